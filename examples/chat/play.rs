//! The other side: three clients, one of which never reads.

use std::io;
use std::net::SocketAddr;

use async_net::TcpStream;
use futures::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

/// The number and the length of ada's lines: more than the buffers of a socket take.
const LINES: u64 = 20_000;
const LENGTH: usize = 1000;

struct Client {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
}

pub async fn play(server: SocketAddr) -> io::Result<()> {
    let mut ada = Client::new(server).await?;
    ada.says("ada").await?;
    ada.hears("* welcome").await?;
    let mut alan = Client::new(server).await?;
    alan.says("alan").await?;
    println!("alan reads: {}", alan.hears("* welcome").await?);
    let mut grace = Client::new(server).await?;
    grace.says("ada").await?;
    println!("grace reads: {}", grace.hears("* refused").await?);
    grace.says("grace").await?;
    grace.hears("* welcome").await?; // her last look at the screen

    // While ada speaks, alan reads.
    let counted = greenroom::spawn(async move {
        let (mut heard, mut missed) = (0, 0);
        while heard + missed < LINES {
            let line = alan.line().await?;
            match line.strip_prefix("* you missed ") {
                Some(rest) => {
                    missed += rest.split(' ').next().map_or(0, |n| n.parse().unwrap_or(0))
                }
                None => heard += u64::from(line.starts_with("ada: ")),
            }
        }
        alan.says("/quit").await?;
        alan.hears("* bye").await?;
        io::Result::Ok(heard + missed)
    });
    let line = "x".repeat(LENGTH);
    for _ in 0..LINES {
        ada.says(&line).await?;
    }
    println!("alan heard or missed {} lines", counted.await?);
    ada.says("/quit").await?;
    ada.hears("* bye").await?;
    Ok(())
}

impl Client {
    async fn new(server: SocketAddr) -> io::Result<Client> {
        let writer = TcpStream::connect(server).await?;
        let mut client = Client {
            reader: BufReader::new(writer.clone()),
            writer,
        };
        client.hears("* what is your name?").await?;
        Ok(client)
    }

    async fn says(&mut self, line: &str) -> io::Result<()> {
        self.writer.write_all(format!("{line}\n").as_bytes()).await
    }

    async fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.reader.read_line(&mut line).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    /// Reads until a line that begins so.
    async fn hears(&mut self, start: &str) -> io::Result<String> {
        loop {
            let line = self.line().await?;
            if line.starts_with(start) {
                return Ok(line);
            }
        }
    }
}
