//! Printing: the actor that writes pages of hits to stdout.
//!
//! Pages are written whole and in order. When stdout is closed (`| head`), the printer ends, and
//! with it the search that fills the pages.

use std::io::{self, Write};

use greenroom::Context;

/// Runs the actor; returns the error that ended it, if any.
pub async fn printer(mut cx: Context<Vec<u8>>) -> io::Result<()> {
    while let Some(page) = cx.recv().await {
        greenroom::unblock(move || {
            let mut out = io::stdout().lock();
            out.write_all(&page)?;
            out.flush()
        })
        .await?;
    }
    Ok(())
}
