//! This example makes small images of those in a folder, and goes on after a crash:
//! `durable_thumbnails STORE FROM TO`.
//!
//! ```text
//! durable_thumbnails thumbnails.db photos small
//! ```
//!
//! It puts a job for each binary PPM file (`P6`) of `FROM`, whose id is the path, the size and the time of the
//! file. So a file that was put is not put again, by this run or a later one, until it changes. Four
//! workers write images that are at most 128 pixels wide and high to the same paths in `TO`.
//!
//! Kill it at any moment and start it again: what was done is not done again, and what was not is done.
//! A worker writes a file beside the image and renames it, so an image that is made twice is as if it were
//! made once. Files that are no such images are dead letters, which `greenroom-durable STORE dead
//! thumbnails` shows.

#[path = "../../../examples/thumbnails/image.rs"]
mod image;

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use greenroom::time::RetryIntervals;
use greenroom::unblock;
use greenroom_durable::{Job, Queue, Serve, Store, Stored};
use image::Image;
use serde::{Deserialize, Serialize};

/// The pixels of an image at most, in each direction.
const SIZE: usize = 128;

/// An image to be made smaller.
#[derive(Serialize, Deserialize)]
struct Thumbnail {
    from: PathBuf,
    to: PathBuf,
}

impl Stored for Thumbnail {
    const KIND: &'static str = "thumbnail/1";
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<_> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [store, from, to] = &words[..] else {
        return Err("usage: durable_thumbnails STORE FROM TO".into());
    };
    greenroom::run(run(store, from, to))
}

async fn run(store: &Path, from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    let store = Store::sqlite(store).open().await?;
    let queue = store.queue::<Thumbnail>("thumbnails").open().await?;
    let before = queue.status().await?;
    let serve = Serve::workers(4).retries(RetryIntervals::steps([Duration::from_millis(100)])?);
    // Another process may have a job for as long as this, after it was killed.
    let serve = serve.lease(Duration::from_secs(5));
    let workers = queue.serve(serve, |job| unblock(move || make(&job)));
    let workers = workers.await?;
    put_all(&queue, from, to).await?;
    queue.drain().await?;
    workers.stop().await;
    let status = queue.status().await?;
    let (made, dead) = (status.done - before.done, status.dead);
    println!("{made} made, {dead} are dead letters");
    store.close().await;
    Ok(())
}

/// Puts a job for each file of a folder and its sub-folders.
async fn put_all(queue: &Queue<Thumbnail>, from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    let mut folders = vec![from.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let about = path.metadata()?;
            if about.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "ppm") {
                let changed = about.modified()?.duration_since(UNIX_EPOCH)?.as_nanos();
                let name = path.strip_prefix(from)?;
                let id = format!("{} {} {changed}", name.display(), about.len());
                let to = to.join(name);
                queue
                    .put(Job::new(Thumbnail { from: path, to }).id(id))
                    .await?;
            }
        }
    }
    Ok(())
}

/// Makes the small image of a file.
fn make(job: &Thumbnail) -> io::Result<()> {
    let small = Image::read(&mut BufReader::new(File::open(&job.from)?))?.shrunk(SIZE);
    if let Some(folder) = job.to.parent() {
        fs::create_dir_all(folder)?;
    }
    let new = job.to.with_extension("new");
    small.write(&mut BufWriter::new(File::create(&new)?))?;
    fs::rename(&new, &job.to)?;
    println!("made {}", job.to.display());
    Ok(())
}
