//! Colours and symbols.

use std::fmt;

use anstyle::{AnsiColor, Style};
pub(crate) use pdca_state::text::{one_line, printable, shell};

use crate::process_env::{ProcessEnv, StandardStream};

/// When to use colours, as asked for by `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColorWhen {
    /// On a terminal, unless `NO_COLOR` is set; always if `CLICOLOR_FORCE` is set.
    #[default]
    Auto,
    Always,
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
    pub fn decide(when: ColorWhen, env: &ProcessEnv, stream: StandardStream) -> Self {
        let set = |name| env.var(name).is_some_and(|value| !value.is_empty());
        let colours = match when {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto if set("NO_COLOR") => false,
            ColorWhen::Auto
                if env
                    .var("CLICOLOR_FORCE")
                    .is_some_and(|value| !value.is_empty() && value != "0") =>
            {
                true
            }
            ColorWhen::Auto => {
                env.terminal.is_terminal(stream)
                    && env.var("TERM").is_none_or(|term| term != "dumb")
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process_env::ProcessEnv;

    fn decided(env: &[(&str, &str)], when: ColorWhen) -> bool {
        Palette::decide(when, &ProcessEnv::of_values("/", env), StandardStream::Out).has_colours()
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
}
