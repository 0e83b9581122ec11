//! A private virtual screen for a test: Xvfb, a window manager, and xdotool as the user.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::picture::{Cells, Picture};

/// A time that only a hang exceeds.
const WATCH: Duration = Duration::from_secs(30);

/// Gives the desktop and the title bar of the active window colours that nothing else has.
const MANAGER: &str = r##"
<JWM>
    <Desktops><Background type="solid">#004000</Background></Desktops>
    <WindowStyle>
        <Background>#600000</Background>
        <Active><Background>#c00000</Background></Active>
    </WindowStyle>
</JWM>"##;
const DESKTOP: [u8; 3] = [0, 0x40, 0];
const TITLE: [u8; 3] = [0xc0, 0, 0];

/// The offset in pixels from the upper right corner of a window to its close button.
const BUTTON: usize = 12;

/// A process that does not outlive the test.
pub struct Process {
    child: Child,
    /// The lines that it prints.
    lines: Receiver<String>,
}

impl Process {
    pub fn start(command: &mut Command) -> Process {
        let name = command.get_program().to_owned();
        let mut child = match command.stdout(Stdio::piped()).spawn() {
            Err(error) if error.kind() == ErrorKind::NotFound => panic!(
                "{} is not installed, which this test needs: `apt-get install xvfb xdotool jwm`",
                name.display()
            ),
            started => started.unwrap_or_else(|error| panic!("{}: {error}", name.display())),
        };
        let printed = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            let lines = printed.lines().map_while(Result::ok);
            lines.map(|line| sender.send(line)).all(|sent| sent.is_ok())
        });
        Process { child, lines }
    }

    /// Waits until it prints a line with this prefix, and returns the rest of that line.
    pub fn line(&self, start: &str) -> String {
        let end = Instant::now() + WATCH;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line = line.unwrap_or_else(|error| panic!("no line {start:?}: {error}"));
            if let Some(rest) = line.strip_prefix(start) {
                return rest.to_owned();
            }
        }
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until it has ended by itself.
    pub fn end(&mut self) -> ExitStatus {
        until("it ends", || self.child.try_wait().unwrap())
    }

    pub fn id(&self) -> String {
        self.child.id().to_string()
    }
}

impl Drop for Process {
    /// Terminates the process before it is killed: a killed X server would leave its sockets
    /// behind.
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = Command::new("kill").arg(self.id()).status();
        }
        let end = Instant::now() + Duration::from_secs(2);
        while let (Ok(None), true) = (self.child.try_wait(), Instant::now() < end) {
            thread::sleep(Duration::from_millis(1));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Polls until `look` returns a value.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + WATCH;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < end, "timed out waiting until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Runs a short command.
pub fn run(command: &mut Command) {
    let status = Process::start(command).end();
    assert!(status.success(), "{command:?}: {status}");
}

/// Reads a file to its end, with a timeout, because it may be a pipe.
pub fn read(path: PathBuf) -> String {
    let (sender, text) = mpsc::channel();
    thread::spawn(move || {
        let mut text = String::new();
        let read = File::open(path).and_then(|mut file| file.read_to_string(&mut text));
        sender.send(read.map(|_| text))
    });
    text.recv_timeout(WATCH).expect("it is written").unwrap()
}

pub struct Screen {
    // Dropped in this order.
    _manager: Process,
    _server: Process,
    display: String,
    folder: TempDir,
}

impl Screen {
    pub fn new() -> Screen {
        let folder = tempfile::tempdir().unwrap();
        let mut server = Command::new("Xvfb");
        server.args("-displayfd 1 -screen 0 1280x1024x24 -nolisten tcp -nocursor".split(' '));
        let server = Process::start(server.arg("-fbdir").arg(folder.path()));
        let display = format!(":{}", server.line(""));
        let settings = folder.path().join("jwmrc");
        fs::write(&settings, MANAGER).unwrap();
        let mut manager = Command::new("jwm");
        manager.env("DISPLAY", &display).arg("-f").arg(settings);
        let screen = Screen {
            _manager: Process::start(&mut manager),
            _server: server,
            display,
            folder,
        };
        until("the window manager is there", || {
            (screen.picture().pixel(0, 0) == DESKTOP).then_some(())
        });
        screen
    }

    /// Returns the path of a file in the test's folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns a command that uses this screen.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("DISPLAY", &self.display);
        // With this driver a frame is on the screen when `present` returns.
        command.env("SDL_RENDER_DRIVER", "software");
        command
    }

    /// Returns the current content of the screen.
    pub fn picture(&self) -> Picture {
        let dump = fs::read(self.file("Xvfb_screen0")).unwrap();
        Picture::from_dump(&dump)
    }

    /// Waits until a board of this size has an active title bar, and returns its upper left pixel.
    pub fn window(&self, size: (usize, usize)) -> (usize, usize) {
        until("the window is there", || {
            let picture = self.picture();
            let (x, y) = picture.corner()?;
            let title = y.checked_sub(BUTTON)?;
            let is_complete = picture.board()?.size() == size;
            (is_complete && picture.pixel(x, title) == TITLE).then_some((x, y))
        })
    }

    /// Waits until the screen shows a board that `is_it` accepts, and returns the board.
    pub fn board(&self, is_it: impl Fn(&Cells) -> bool) -> Cells {
        until("the board is on the screen", || {
            self.picture().board().filter(|board| is_it(board))
        })
    }

    /// Presses a key while the mouse is at this pixel.
    pub fn press(&self, (x, y): (usize, usize), key: &str) {
        self.user(&["mousemove", &x.to_string(), &y.to_string(), "key", key]);
    }

    pub fn click(&self, (x, y): (usize, usize)) {
        self.user(&["mousemove", &x.to_string(), &y.to_string(), "click", "1"]);
    }

    /// Clicks the close button of a window with this upper left pixel and this width in pixels.
    pub fn close(&self, (x, y): (usize, usize), width: usize) {
        self.click((x + width - BUTTON, y - BUTTON));
    }

    fn user(&self, does: &[&str]) {
        run(self.command("xdotool").args(does));
    }
}
