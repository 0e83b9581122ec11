//! Images in the binary PPM format: a header in text, and three bytes a pixel.

use std::io::{self, BufRead, Read, Write};

pub struct Image {
    pub width: usize,
    pub height: usize,
    /// Red, green and blue of each pixel, row by row.
    pixels: Vec<u8>,
}

/// The most pixels of an image: 256 million.
const PIXELS_MAX: usize = 1 << 28;

impl Image {
    /// Reads an image.
    pub fn read(from: &mut impl BufRead) -> io::Result<Self> {
        let mut magic = [0; 2];
        from.read_exact(&mut magic)?;
        if &magic != b"P6" {
            return Err(wrong("it is no binary PPM file"));
        }
        let [width, height, most] = [number(from)?, number(from)?, number(from)?];
        if most != 255 {
            return Err(wrong(&format!("its values go to {most}, not to 255")));
        }
        let count = width
            .checked_mul(height)
            .filter(|count| (1..=PIXELS_MAX).contains(count));
        let count = count.ok_or_else(|| wrong(&format!("it is {width} x {height} pixels")))?;
        let mut pixels = Vec::new();
        let bytes = 3 * count;
        from.take(bytes as u64).read_to_end(&mut pixels)?;
        if pixels.len() < bytes {
            let there = pixels.len();
            return Err(wrong(&format!("it has {there} of {bytes} bytes of pixels")));
        }
        Ok(Image {
            width,
            height,
            pixels,
        })
    }

    /// Writes the image.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        write!(to, "P6\n{} {}\n255\n", self.width, self.height)?;
        to.write_all(&self.pixels)
    }

    /// Returns an image that is at most `size` pixels wide and high. Each of its pixels is the mean
    /// of those that it covers.
    pub fn shrunk(&self, size: usize) -> Self {
        let longest = self.width.max(self.height);
        let fit = |length: usize| match longest > size {
            true => (length * size / longest).max(1),
            false => length,
        };
        let (width, height) = (fit(self.width), fit(self.height));
        let mut pixels = Vec::with_capacity(3 * width * height);
        for row in 0..height {
            let rows = row * self.height / height..(row + 1) * self.height / height;
            for column in 0..width {
                let columns = column * self.width / width..(column + 1) * self.width / width;
                let mut sums = [0u64; 3];
                for y in rows.clone() {
                    for x in columns.clone() {
                        let at = 3 * (y * self.width + x);
                        let pixel = &self.pixels[at..at + 3];
                        sums.iter_mut()
                            .zip(pixel)
                            .for_each(|(sum, &value)| *sum += u64::from(value));
                    }
                }
                let count = (rows.len() * columns.len()) as u64;
                pixels.extend(sums.map(|sum| (sum / count) as u8));
            }
        }
        Image {
            width,
            height,
            pixels,
        }
    }
}

/// Reads a number of the header, the white space and comments before it, and one byte after it.
fn number(from: &mut impl BufRead) -> io::Result<usize> {
    let mut number: Option<usize> = None;
    let mut is_comment = false;
    loop {
        let mut byte = [0];
        from.read_exact(&mut byte)?;
        match (byte[0], number) {
            (b'\n', None) => is_comment = false,
            (_, None) if is_comment => {}
            (b'#', None) => is_comment = true,
            (digit @ b'0'..=b'9', before) => {
                let digit = usize::from(digit - b'0');
                let more = before.unwrap_or(0).checked_mul(10);
                let more = more.and_then(|number| number.checked_add(digit));
                number = Some(more.ok_or_else(|| wrong("a number of its header is too large"))?);
            }
            (byte, before) if byte.is_ascii_whitespace() => {
                if let Some(number) = before {
                    return Ok(number);
                }
            }
            _ => return Err(wrong("its header is damaged")),
        }
    }
}

fn wrong(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
