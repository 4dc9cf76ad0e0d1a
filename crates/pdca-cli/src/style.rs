//! Colours, symbols and text that is safe to print.

use std::borrow::Cow;
use std::fmt;

use anstyle::{AnsiColor, Style};

use crate::ambient::{Ambient, Stream};

/// When to use colours, as asked for by `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum ColorWhen {
    /// On a terminal, unless `NO_COLOR` is set; always if `CLICOLOR_FORCE` is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Colours text, or not: decided once per stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Palette {
    colours: bool,
}

impl Palette {
    pub const PLAIN: Palette = Palette { colours: false };

    /// Decides for one stream: the flag wins, then `NO_COLOR`, then `CLICOLOR_FORCE`, then whether it is a terminal.
    pub fn decide(when: ColorWhen, ambient: &Ambient, stream: Stream) -> Self {
        let set = |name| ambient.env(name).is_some_and(|value| !value.is_empty());
        let colours = match when {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto if set("NO_COLOR") => false,
            ColorWhen::Auto
                if ambient
                    .env("CLICOLOR_FORCE")
                    .is_some_and(|value| !value.is_empty() && value != "0") =>
            {
                true
            }
            ColorWhen::Auto => {
                ambient.terminal.is_terminal(stream)
                    && ambient.env("TERM").is_none_or(|term| term != "dumb")
            }
        };
        Palette { colours }
    }

    pub fn has_colours(self) -> bool {
        self.colours
    }

    /// For success.
    pub fn good<T: fmt::Display>(self, text: T) -> Painted<T> {
        self.paint(Style::new().fg_color(Some(AnsiColor::Green.into())), text)
    }

    /// For errors.
    pub fn bad<T: fmt::Display>(self, text: T) -> Painted<T> {
        self.paint(Style::new().fg_color(Some(AnsiColor::Red.into())).bold(), text)
    }

    /// For warnings.
    pub fn warn<T: fmt::Display>(self, text: T) -> Painted<T> {
        self.paint(Style::new().fg_color(Some(AnsiColor::Yellow.into())), text)
    }

    /// For commands to type and names to notice.
    pub fn accent<T: fmt::Display>(self, text: T) -> Painted<T> {
        self.paint(Style::new().fg_color(Some(AnsiColor::Cyan.into())), text)
    }

    /// For headings.
    pub fn strong<T: fmt::Display>(self, text: T) -> Painted<T> {
        self.paint(Style::new().bold(), text)
    }

    /// For text that may be skipped.
    pub fn faint<T: fmt::Display>(self, text: T) -> Painted<T> {
        self.paint(Style::new().dimmed(), text)
    }

    fn paint<T: fmt::Display>(self, style: Style, text: T) -> Painted<T> {
        Painted { style: if self.colours { style } else { Style::new() }, text }
    }
}

/// Text with a style; padding (`{:<18}`) counts the text only.
#[derive(Debug, Clone, Copy)]
pub struct Painted<T> {
    style: Style,
    text: T,
}

impl<T: fmt::Display> fmt::Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.style.render())?;
        self.text.fmt(f)?;
        write!(f, "{}", self.style.render_reset())
    }
}

/// Escapes control characters, including escape sequences, so that text from a file is safe to print.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_unsafe) {
        Cow::Owned(
            text.chars()
                .map(|c| if is_unsafe(c) { c.escape_unicode().to_string() } else { c.to_string() })
                .collect(),
        )
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns the first line of `text`, printable, cut to `max` characters with an ellipsis.
pub fn one_line(text: &str, max: usize) -> String {
    let line = printable(text.lines().next().unwrap_or_default().trim()).into_owned();
    if line.chars().count() <= max {
        return line;
    }
    let mut cut: String = line.chars().take(max.saturating_sub(1)).collect();
    cut.truncate(cut.trim_end().len());
    cut.push('…');
    cut
}

/// Quotes a word for a shell, if needed.
pub fn shell(word: &str) -> Cow<'_, str> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+@%".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
    }
}

/// Returns whether a character is a control character, or an invisible one that changes the reading direction.
fn is_unsafe(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ambient::Ambient;

    fn decided(env: &[(&str, &str)], when: ColorWhen) -> bool {
        Palette::decide(when, &Ambient::for_tests("/", env), Stream::Out).has_colours()
    }

    #[test]
    fn off_a_terminal_there_is_no_colour_unless_it_is_forced() {
        assert!(!decided(&[], ColorWhen::Auto));
        assert!(decided(&[("CLICOLOR_FORCE", "1")], ColorWhen::Auto));
        assert!(!decided(&[("CLICOLOR_FORCE", "0")], ColorWhen::Auto));
        assert!(!decided(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], ColorWhen::Auto));
        assert!(decided(&[("NO_COLOR", "1")], ColorWhen::Always));
        assert!(!decided(&[("CLICOLOR_FORCE", "1")], ColorWhen::Never));
    }

    #[test]
    fn an_escape_sequence_in_a_brief_never_reaches_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(printable("plain"), "plain");
    }

    #[test]
    fn a_long_line_is_cut_with_an_ellipsis() {
        assert_eq!(one_line("one two three\nfour", 8), "one two…");
        assert_eq!(one_line("short", 8), "short");
    }
}
