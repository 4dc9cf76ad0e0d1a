//! The card of a bundle as text, whole or short.

use std::io::Write;

use crate::columns::wrap;
use pdca_workspace::review::{Card, CardLine};

use crate::context::Context;
use crate::failure::Failure;
use crate::render::toned;
use crate::report::Report;
use crate::style::{Palette, one_line, printable};

impl Report for Card {
    const KIND: &'static str = "card";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for line in lines(self, cx.out, cx.width()) {
            writeln!(out, "{line}")?;
        }
        for offer in &self.offers {
            let command = cx.out.accent(cx.typed(&offer.command));
            writeln!(out, "  {command}")?;
            if let Some(why) = &offer.refused {
                let why = one_line(why, cx.width().saturating_sub(15));
                writeln!(out, "    {}", cx.out.warn(format!("refused: {why}")))?;
            }
        }
        Ok(())
    }
}

/// Returns the heading of a card.
pub(crate) fn heading(card: &Card, palette: Palette, width: usize) -> String {
    let attempt = match card.attempt {
        1 => String::new(),
        attempt => format!("  attempt {attempt}"),
    };
    let taken = card.id.as_ref().len() + card.state.as_str().len() + attempt.len() + 4;
    let title = one_line(&card.title, width.saturating_sub(taken).max(10));
    format!("{}  {}  {title}{attempt}", palette.strong(&card.id), palette.accent(card.state))
}

/// Returns all lines of a card, wrapped at words.
pub(crate) fn lines(card: &Card, palette: Palette, width: usize) -> Vec<String> {
    let mut lines = vec![heading(card, palette, width)];
    for section in card.sections() {
        lines.push(palette.strong(section.title).to_string());
        for CardLine { tone, text } in section.lines {
            let indent = text.len() - text.trim_start().len();
            let space = " ".repeat(2 + indent);
            let room = width.saturating_sub(2 + indent).max(20);
            for part in wrap(&printable(text.trim_start()), room, "  ") {
                lines.push(format!("{space}{}", toned(palette, tone, part)));
            }
        }
    }
    lines
}

/// Returns the lines of a card, each cut to the width, and at most `most` of them.
pub(crate) fn short_lines(card: &Card, palette: Palette, width: usize, most: usize) -> Vec<String> {
    let mut lines = vec![heading(card, palette, width)];
    for section in card.sections() {
        let title = format!("{:<10}", one_line(section.title, 10));
        for (index, line) in section.lines.into_iter().enumerate() {
            let label = if index == 0 { title.as_str() } else { "          " };
            let text = one_line(&line.text, width.saturating_sub(13).max(20));
            let toned = toned(palette, line.tone, text);
            lines.push(format!(" {} {toned}", palette.strong(label)));
        }
    }
    if lines.len() > most {
        let left = lines.len() + 1 - most;
        lines.truncate(most.saturating_sub(1));
        lines.push(palette.faint(format!(" … {left} more lines; `v` shows them")).to_string());
    }
    lines
}
