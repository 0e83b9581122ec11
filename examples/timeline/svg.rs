//! The writer of SVG: shapes with a class each, and the style sheet that gives them their colours.
//!
//! A picture has its own background, and colours for a light and for a dark one: the reader's
//! settings choose. It needs no script, no font and no other file.

use std::fmt::{Arguments, Display, Write};

/// The style sheet. Its rules hold below the class `tl` only, so that a picture can be a part of a page.
/// `k0` to `k7` are the kinds of actors, `k8` is the rest of them.
const STYLE: &str = "
.tl text{font:12px system-ui,sans-serif;fill:#24292f}
.tl .title{font-size:18px;font-weight:600}.tl .head{font-weight:600}
.tl .mute{fill:#656d76}.tl .small{font-size:11px}
.tl .warn{fill:#bc4c00;font-weight:600}
.tl .end{text-anchor:end}.tl .mid{text-anchor:middle}
.tl .back{fill:#fff}.tl .lane{fill:#f0f2f4}.tl .grid{stroke:#d0d7de;fill:none}
.tl .sleep{fill:#d3dae1}.tl .stripes{fill:url(#stripes)}
.tl .stripe{stroke:#aab4be;stroke-width:1.5}.tl .lost{fill:#bc4c00;fill-opacity:.25}
.tl .bar{fill:#57606a}.tl .box{stroke:#f0f2f4;stroke-width:.5}
.tl .k0{fill:#4477aa}.tl .k1{fill:#ee6677}.tl .k2{fill:#228833}.tl .k3{fill:#ccbb44}
.tl .k4{fill:#66ccee}.tl .k5{fill:#aa3377}.tl .k6{fill:#ee8866}.tl .k7{fill:#44bb99}.tl .k8{fill:#8c959f}
@media(prefers-color-scheme:dark){
.tl text{fill:#e6edf3}.tl .mute{fill:#9198a1}.tl .warn{fill:#f0883e}
.tl .back{fill:#0d1117}.tl .lane{fill:#1c2128}.tl .grid{stroke:#373e47}
.tl .sleep{fill:#333b45}.tl .stripe{stroke:#5b6672}.tl .lost{fill:#f0883e}
.tl .bar{fill:#adbac7}.tl .box{stroke:#1c2128}.tl .k0{fill:#5b8fc7}.tl .k5{fill:#cc5599}.tl .k2{fill:#3fa64f}
}
";

/// The pattern of `stripes`.
const STRIPES: &str = r#"<defs><pattern id="stripes" width="6" height="6"
patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="sleep" width="6"
height="6"/><path class="stripe" d="M0 0v6"/></pattern></defs>
"#;

/// An SVG picture in the making. Coordinates are pixels, rounded to a tenth.
pub struct Canvas {
    out: String,
    width: usize,
}

impl Canvas {
    pub fn new(width: usize) -> Self {
        Canvas {
            out: String::new(),
            width,
        }
    }

    /// Adds text as it is: the caller escapes what is not its own.
    fn put(&mut self, text: Arguments<'_>) {
        self.out.write_fmt(text).expect("a `String` takes any text");
    }

    /// Adds a rectangle; `title` is shown by a pointer that rests on it.
    pub fn rect(&mut self, class: &str, [x, y, width, height]: [f64; 4], title: &str) {
        let [x, y, width, height] = [x, y, width, height].map(Tenths);
        self.put(format_args!(
            r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}""#
        ));
        match title {
            "" => self.put(format_args!("/>\n")),
            _ => self.put(format_args!("><title>{}</title></rect>\n", escape(title))),
        }
    }

    /// Adds rectangles of one class as one shape, if there are any.
    pub fn rects(&mut self, class: &str, rects: impl IntoIterator<Item = [f64; 4]>) {
        let mut is_first = true;
        for rect in rects {
            if std::mem::take(&mut is_first) {
                self.put(format_args!(r#"<path class="{class}" d=""#));
            }
            let [x, y, width, height] = rect.map(Tenths);
            self.put(format_args!("M{x} {y}h{width}v{height}h-{width}z"));
        }
        if !is_first {
            self.put(format_args!("\"/>\n"));
        }
    }

    /// Adds a line of text.
    pub fn text(&mut self, class: &str, x: f64, y: f64, text: impl Display) {
        let text = text.to_string();
        let (x, y, text) = (Tenths(x), Tenths(y), escape(&text));
        self.put(format_args!("<text x=\"{x}\" y=\"{y}\""));
        if !class.is_empty() {
            self.put(format_args!(" class=\"{class}\""));
        }
        self.put(format_args!(">{text}</text>\n"));
    }

    /// Adds a vertical line of the grid.
    pub fn vertical(&mut self, x: f64, y: f64, height: f64) {
        let (x, y, height) = (Tenths(x), Tenths(y), Tenths(height));
        self.put(format_args!(
            "<path class=\"grid\" d=\"M{x} {y}v{height}\"/>\n"
        ));
    }

    /// Returns the picture as a file of this height.
    pub fn finish(self, height: f64, title: &str) -> String {
        let Canvas { out, width } = self;
        let (height, title) = (Tenths(height), escape(title));
        let mut file = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"tl\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" style=\"max-width:100%;height:auto\">\n"
        );
        file += &format!("<title>{title}</title>\n<style>{STYLE}</style>\n{STRIPES}");
        file += "<rect class=\"back\" width=\"100%\" height=\"100%\"/>\n";
        file + &out + "</svg>\n"
    }
}

/// A coordinate, with one digit after the point where it needs one.
struct Tenths(f64);

impl Display for Tenths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tenths = (self.0 * 10.0).round() as i64;
        match tenths % 10 {
            0 => write!(f, "{}", tenths / 10),
            _ => write!(f, "{}", tenths as f64 / 10.0),
        }
    }
}

/// Returns the text as XML has it. A character that XML cannot have is replaced.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
