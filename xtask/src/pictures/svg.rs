//! A terminal as SVG: text with colours, and nothing that asks for anything.

use std::fmt::Write as _;

/// The size of a letter.
const LETTER: (f32, f32) = (8.4, 18.0);
const MARGIN: f32 = 14.0;
/// The rows of a recording that are seen at once.
const ROWS: usize = 30;
/// The columns of a recording; longer lines are broken.
const COLUMNS: usize = 110;
/// The time that a line is the newest one, in seconds.
const PACE: f32 = 0.22;
/// The time that the end stays, in seconds.
const REST: f32 = 6.0;

const STYLE: &str = "text{font:14px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#e6edf3;white-space:pre}\
.f0{fill:#161b22}.f1{fill:#ff938a}.f2{fill:#6ee08c}.f3{fill:#f0c04a}.f4{fill:#79b8ff}.f5{fill:#c8a6ff}.f6{fill:#7ee0e0}.f7{fill:#e6edf3}\
.b{font-weight:700}.d{opacity:.6}.u{text-decoration:underline}.r{fill:#0d1117}";

/// A piece of a line in one style.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Piece {
    text: String,
    style: Style,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a terminal has these attributes, each by itself"
)]
struct Style {
    colour: Option<u8>,
    is_bold: bool,
    is_dim: bool,
    is_underlined: bool,
    is_reversed: bool,
}

/// Draws one screen.
pub(super) fn screen(text: &str) -> String {
    let lines = read(text.trim_end_matches('\n'));
    let columns = lines.iter().map(|line| width(line)).max().unwrap_or(0);
    let size = (columns, lines.len());
    let mut body = String::new();
    for (row, line) in lines.iter().enumerate() {
        draw(&mut body, line, row);
    }
    frame(size, "", &body)
}

/// Draws a long output that scrolls by. Without motion its last screen stays.
pub(super) fn recording(text: &str) -> String {
    let lines = read(text.trim_end_matches('\n'));
    let lines: Vec<Vec<Piece>> = lines.iter().flat_map(|line| wrapped(line)).collect();
    let steps = lines.len().saturating_sub(ROWS);
    let mut body = String::from("<g class=\"roll\">");
    for (row, line) in lines.iter().enumerate() {
        draw(&mut body, line, row);
    }
    body.push_str("</g>");
    #[expect(clippy::cast_precision_loss, reason = "a recording has some hundred lines")]
    let (steps_f, last) = (steps as f32, steps as f32 * LETTER.1);
    let time = steps_f.mul_add(PACE, REST);
    let share = 100.0 * steps_f * PACE / time;
    let style = format!(
        ".roll{{transform:translateY(-{last}px);animation:roll {time:.1}s infinite}}\
         @keyframes roll{{0%{{transform:translateY(0);animation-timing-function:steps({steps})}}{share:.2}%{{transform:translateY(-{last}px)}}100%{{transform:translateY(-{last}px)}}}}\
         @media (prefers-reduced-motion:reduce){{.roll{{animation:none}}}}"
    );
    frame((COLUMNS, ROWS), &style, &body)
}

fn frame((columns, rows): (usize, usize), style: &str, body: &str) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a terminal has some hundred columns")]
    let (wide, high) = (
        (columns as f32).mul_add(LETTER.0, 2.0 * MARGIN),
        (rows as f32).mul_add(LETTER.1, 2.0 * MARGIN),
    );
    // The inner picture cuts off what has scrolled away.
    let (inner_w, inner_h) = (wide - 2.0 * MARGIN, high - 2.0 * MARGIN);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide:.0} {high:.0}\" width=\"{wide:.0}\" height=\"{high:.0}\" role=\"img\">\
         <style>{STYLE}{style}</style><rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0d1117\"/>\
         <svg x=\"{MARGIN}\" y=\"{MARGIN}\" width=\"{inner_w:.1}\" height=\"{inner_h:.1}\">{body}</svg></svg>\n"
    )
}

fn draw(out: &mut String, line: &[Piece], row: usize) {
    #[expect(clippy::cast_precision_loss, reason = "a terminal has some hundred rows")]
    let at = |columns: usize| columns as f32 * LETTER.0;
    #[expect(clippy::cast_precision_loss, reason = "a recording has some hundred lines")]
    let top = row as f32 * LETTER.1;
    let mut column = 0;
    let mut text = String::new();
    for piece in line {
        let long = piece.text.chars().count();
        if piece.style.is_reversed {
            let (x, wide) = (at(column), at(long));
            add(
                out,
                format_args!(
                    "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{wide:.1}\" height=\"{}\" fill=\"#e6edf3\"/>",
                    LETTER.1
                ),
            );
        }
        if !piece.text.trim().is_empty() {
            let (class, x) = (class(piece.style), at(column));
            add(
                &mut text,
                format_args!("<tspan x=\"{x:.1}\"{class}>{}</tspan>", escaped(&piece.text)),
            );
        }
        column += long;
    }
    if !text.is_empty() {
        add(out, format_args!("<text y=\"{:.1}\">{text}</text>", top + 13.5));
    }
}

fn class(style: Style) -> String {
    let mut names: Vec<String> = Vec::new();
    if style.is_reversed {
        names.push("r".to_owned());
    } else if let Some(colour) = style.colour {
        names.push(format!("f{colour}"));
    }
    for (is_set, name) in [(style.is_bold, "b"), (style.is_dim, "d"), (style.is_underlined, "u")] {
        if is_set {
            names.push(name.to_owned());
        }
    }
    if names.is_empty() { String::new() } else { format!(" class=\"{}\"", names.join(" ")) }
}

fn add(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("because a string takes any text");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn width(line: &[Piece]) -> usize {
    line.iter().map(|piece| piece.text.chars().count()).sum()
}

/// Breaks a line of a recording where a terminal of that width would, but at a blank.
fn wrapped(line: &[Piece]) -> Vec<Vec<Piece>> {
    let letters: Vec<(char, Style)> = line
        .iter()
        .flat_map(|piece| piece.text.chars().map(|letter| (letter, piece.style)))
        .collect();
    let mut rows = Vec::new();
    let mut rest = letters.as_slice();
    while rest.len() > COLUMNS {
        let blank = rest[..COLUMNS].iter().rposition(|(letter, _)| *letter == ' ');
        let (head, tail) = rest.split_at(blank.map_or(COLUMNS, |at| at + 1));
        rows.push(joined(head));
        rest = tail;
    }
    rows.push(joined(rest));
    rows
}

/// Joins letters of one style.
fn joined(letters: &[(char, Style)]) -> Vec<Piece> {
    let alike = letters.chunk_by(|(_, one), (_, other)| one == other);
    let piece = |letters: &[(char, Style)]| Piece {
        text: letters.iter().map(|(letter, _)| letter).collect(),
        style: letters.first().map(|(_, style)| *style).unwrap_or_default(),
    };
    alike.map(piece).collect()
}

/// Reads text with the colours of a terminal.
fn read(text: &str) -> Vec<Vec<Piece>> {
    let mut style = Style::default();
    text.split('\n').map(|line| read_line(line, &mut style)).collect()
}

fn read_line(line: &str, style: &mut Style) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let (plain, after) = rest.split_once('\u{1b}').unwrap_or((rest, ""));
        if !plain.is_empty() {
            pieces.push(Piece { text: plain.to_owned(), style: *style });
        }
        // `[1;31m` sets a style; other sequences draw nothing.
        let end = after
            .find(|letter: char| letter.is_ascii_alphabetic())
            .map_or(after.len(), |at| at + 1);
        let (sequence, next) = after.split_at(end);
        if let Some(codes) = sequence.strip_prefix('[').and_then(|codes| codes.strip_suffix('m')) {
            apply(style, codes);
        }
        rest = next;
    }
    pieces
}

fn apply(style: &mut Style, codes: &str) {
    for code in codes.split(';').map(|code| code.parse::<u8>().unwrap_or(0)) {
        match code {
            0 => *style = Style::default(),
            1 => style.is_bold = true,
            2 => style.is_dim = true,
            4 => style.is_underlined = true,
            7 => style.is_reversed = true,
            22 => (style.is_bold, style.is_dim) = (false, false),
            24 => style.is_underlined = false,
            27 => style.is_reversed = false,
            30..=37 => style.colour = Some(code - 30),
            39 => style.colour = None,
            90..=97 => style.colour = Some(code - 90),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_become_classes_and_text_is_escaped() {
        let lines = read("a\u{1b}[1;31mred\u{1b}[0m <b>\nplain");
        assert_eq!(lines.len(), 2);
        let red = Style { colour: Some(1), is_bold: true, ..Style::default() };
        assert_eq!(lines[0][1], Piece { text: "red".to_owned(), style: red });
        let picture = screen("a\u{1b}[1;31mred\u{1b}[0m <b>");
        assert!(picture.contains("class=\"f1 b\">red</tspan>"), "{picture}");
        assert!(picture.contains("&lt;b&gt;"), "{picture}");
        assert!(!picture.contains("href"), "{picture}");
    }

    #[test]
    fn a_long_line_is_broken_at_a_blank_and_keeps_its_style() {
        let rows = wrapped(&read(&format!("\u{1b}[1m{}", "word ".repeat(30)))[0]);
        assert_eq!(rows.iter().map(|row| width(row)).collect::<Vec<_>>(), [110, 40]);
        assert!(rows.iter().flatten().all(|piece| piece.style.is_bold), "{rows:?}");
    }

    #[test]
    fn a_recording_has_every_line_and_ends_at_the_last_screen() {
        let lines: Vec<String> = (0..100).map(|line| format!("line {line}\n")).collect();
        let picture = recording(&lines.concat());
        assert!(picture.contains(">line 0<") && picture.contains(">line 99<"), "{picture}");
        assert!(picture.contains("steps(70)"), "{picture}");
    }
}
