//! Walks through shell text as a shell would, without running anything, and applies the rules to every command.
//!
//! 1. The [lexer](crate::tool_guard::lexer) splits the text into words and operators.
//! 2. Each simple command is expanded: variables that the text or the environment sets, brace lists, and substitutions
//!    with a known output (`$(echo git)`). Unknown text becomes [`UNKNOWN`].
//! 3. Wrappers (`env`, `timeout`, `xargs`, `sh -c`, …) are [unwrapped](crate::tool_guard::nested), and the commands in them are
//!    walked in turn.
//! 4. The result is a program with arguments, which the [rules](crate::tool_guard::rule) judge.
//!
//! Both sides of a condition and every branch are walked: a command that could run counts as run. Compound commands are
//! not parsed by a grammar; their reserved words are skipped, so that a command in any of them is found even if the
//! text around it is malformed.

mod fields;

use std::collections::BTreeMap;
use std::rc::Rc;

use camino::{Utf8Path, Utf8PathBuf};

use self::fields::{Fields, braces, output_of};
use crate::tool_guard::answer::GuardRefusal;
use crate::tool_guard::lexer::{Operator, Piece, Redirect, RedirectKind, ShellToken, Word, lex};
use crate::tool_guard::nested::{Nested, nested};
use crate::tool_guard::rule;
use crate::tool_guard::scope::GuardScope;

/// Stands for text that is only known at run time. The character does not occur in file names or options.
pub(crate) const UNKNOWN: char = '\u{FFFC}';
/// Stands for the process id of the driver or of another process that runs the builder.
pub(crate) const DRIVER_PID: &str = "\u{FFFC}driver";

/// The deepest nesting of scripts in scripts.
// Enough for scripts that people write; it ends aliases and functions that call themselves, and
// bounds the recursion on the stack.
const DEEPEST: usize = 24;
/// The most commands that are examined per call. Longer text is refused only if it names a command that would be.
// The hook runs before every tool call, so its time has to be bounded whatever the text is: loops
// in loops multiply.
const MOST: usize = 4_000;
/// The number of words of unparsable text that are taken for one command.
const LONGEST: usize = 64;
/// The number of loop values that are tried.
const TURNS: usize = 16;

/// Looks up a git alias in the configuration; `None` if there is no such alias.
pub type AliasLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The state of the walk.
#[derive(Clone)]
pub(crate) struct ShellWalk<'a> {
    pub(crate) scope: &'a GuardScope,
    pub(crate) git_alias: AliasLookup<'a>,
    /// The working directory, as long as it is known.
    pub(crate) cwd: Option<Utf8PathBuf>,
    vars: BTreeMap<String, String>,
    positional: Vec<String>,
    functions: BTreeMap<String, Rc<Vec<ShellToken>>>,
    aliases: BTreeMap<String, String>,
    /// The outputs of process substitutions, by number.
    outputs: Vec<Option<String>>,
    depth: usize,
    /// If set, git aliases are not expanded, because nothing may be walked any deeper.
    pub(crate) is_shallow: bool,
    budget: usize,
    pub(crate) unseen: Vec<String>,
}

/// The standard output of a command, if it is known.
type Output = Option<String>;

/// Reserved words that precede or separate commands.
const STEPPED_OVER: [&str; 16] = [
    "if", "then", "else", "elif", "fi", "do", "done", "while", "until", "esac", "{", "}", "!",
    "coproc", "select", "in",
];

impl<'a> ShellWalk<'a> {
    pub(crate) fn new(scope: &'a GuardScope, git_alias: AliasLookup<'a>, cwd: Utf8PathBuf) -> Self {
        Self {
            scope,
            git_alias,
            cwd: Some(cwd),
            vars: scope.env.clone(),
            positional: Vec::new(),
            functions: BTreeMap::new(),
            aliases: BTreeMap::new(),
            outputs: Vec::new(),
            depth: 0,
            is_shallow: false,
            budget: MOST,
            unseen: Vec::new(),
        }
    }

    /// Sets variables for everything that is walked from now on.
    pub(crate) fn assign(&mut self, assigned: &BTreeMap<String, String>) {
        self.vars.extend(assigned.clone());
    }

    /// Records that something was not examined.
    pub(crate) fn not_seen(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.unseen.contains(&what) && self.unseen.len() < 16 {
            self.unseen.push(what);
        }
    }

    /// Walks through the text of a call.
    pub(crate) fn whole(&mut self, text: &str) -> Result<(), GuardRefusal> {
        self.script(text, None)?;
        if self.budget == 0 {
            return self.unparsed(text, "it starts too many commands");
        }
        Ok(())
    }

    /// Walks through a script.
    pub(crate) fn script(&mut self, text: &str, stdin: Output) -> Result<Output, GuardRefusal> {
        if self.depth >= DEEPEST {
            return self.unparsed(text, "it is nested too deeply").map(|()| None);
        }
        self.depth += 1;
        let lexed = lex(text);
        let walked = match lexed.flaw {
            Some(flaw) => self.unparsed(text, flaw),
            None => Ok(()),
        };
        let walked = walked.and_then(|()| self.tokens(&lexed.tokens, stdin));
        self.depth -= 1;
        walked
    }

    /// Refuses text that cannot be parsed only if it names a command that would be refused.
    fn unparsed(&mut self, text: &str, flaw: &str) -> Result<(), GuardRefusal> {
        // Every position of the text is tried as a command below. Following aliases from each of
        // them would walk scripts again, from text that is known to be wrong.
        let was_shallow = std::mem::replace(&mut self.is_shallow, true);
        let found = self.names_refused(text);
        self.is_shallow = was_shallow;
        if let Some(refusal) = found {
            let why = format!("{} (the rest cannot be parsed: {flaw})", refusal.why);
            return Err(GuardRefusal { why, ..refusal });
        }
        self.not_seen(format!("not all of the text can be parsed: {flaw}"));
        Ok(())
    }

    /// Finds the first sequence of words in `text` that would be refused as a command.
    fn names_refused(&mut self, text: &str) -> Option<GuardRefusal> {
        for line in text.lines() {
            let words: Vec<String> = line
                .split(|c: char| c.is_whitespace() || "'\"`$(){};|&<>\\".contains(c))
                .filter(|word| !word.is_empty())
                .map(str::to_owned)
                .collect();
            // Quotes and operators are taken for blanks, so this errs towards finding a command: a
            // quotation of `git push` in broken text is refused.
            for start in 0..words.len() {
                if let Err(refusal) = rule::judge(
                    &words[start..words.len().min(start + LONGEST)],
                    &BTreeMap::new(),
                    self,
                ) {
                    return Some(refusal);
                }
            }
        }
        None
    }

    fn tokens(&mut self, tokens: &[ShellToken], stdin: Output) -> Result<Output, GuardRefusal> {
        let mut piped = stdin;
        let mut output = None;
        // A subshell restores these when it ends.
        let mut subshells = Vec::new();
        let mut at = 0;
        while at < tokens.len() && self.budget > 0 {
            match &tokens[at] {
                ShellToken::Operator(Operator::Open) => {
                    subshells.push((self.cwd.clone(), self.vars.clone()));
                    at += 1;
                    continue;
                }
                ShellToken::Operator(Operator::Close) => {
                    // A `)` that ends a pattern of a `case` has no `(`, so there may be nothing to restore.
                    if let Some((cwd, vars)) = subshells.pop() {
                        (self.cwd, self.vars) = (cwd, vars);
                    }
                    at += 1;
                    continue;
                }
                ShellToken::Operator(Operator::Then) => {
                    at += 1;
                    continue;
                }
                ShellToken::Operator(Operator::Pipe) => {
                    piped = output.take();
                    at += 1;
                    continue;
                }
                ShellToken::Word(_) | ShellToken::Redirect(_) => {}
            }
            let end = at + tokens[at..].iter().take_while(|token| !is_operator(token)).count();
            let simple = &tokens[at..end];
            if let Some(next) = self.define_function(tokens, at, end)? {
                at = next;
                continue;
            }
            if let Some(next) = self.turn_loop(tokens, simple, end)? {
                at = next;
                continue;
            }
            output = self.simple(simple, piped.take())?;
            at = end;
        }
        Ok(output)
    }

    /// Stores `name() { … }` or `function name { … }` for later calls, and walks its body once. Returns the position
    /// after it.
    fn define_function(
        &mut self,
        tokens: &[ShellToken],
        at: usize,
        end: usize,
    ) -> Result<Option<usize>, GuardRefusal> {
        let text = |index: usize| match tokens.get(index) {
            Some(ShellToken::Word(word)) => word.bare(),
            _ => None,
        };
        let is = |index: usize, operator: Operator| {
            tokens.get(index) == Some(&ShellToken::Operator(operator))
        };
        let (name, mut body) = if text(at) == Some("function") && end >= at + 2 {
            let parens = is(at + 2, Operator::Open) && is(at + 3, Operator::Close);
            (text(at + 1), if parens { at + 4 } else { at + 2 })
        } else if end == at + 1 && is(end, Operator::Open) && is(end + 1, Operator::Close) {
            (text(at), end + 2)
        } else {
            return Ok(None);
        };
        let Some(name) = name else { return Ok(None) };
        while is(body, Operator::Then) {
            body += 1;
        }
        let close = if is(body, Operator::Open) {
            closing_parenthesis(tokens, body)
        } else {
            closing_word(tokens, body, &["{"], "}")
        };
        let Some(close) = close else { return Ok(None) };
        let inner = Rc::new(tokens[body + 1..close].to_vec());
        // Walked when it is defined, because it may be called by a name that is not seen, and in a
        // copy, because its `cd` does not happen here.
        let mut once = self.clone();
        once.positional = Vec::new();
        once.tokens(&inner, None)?;
        self.take_over(once);
        self.functions.insert(name.to_owned(), inner);
        Ok(Some(close + 1))
    }

    /// Walks `for name in values; do …; done` once per value. Returns the position after it.
    fn turn_loop(
        &mut self,
        tokens: &[ShellToken],
        simple: &[ShellToken],
        end: usize,
    ) -> Result<Option<usize>, GuardRefusal> {
        let words: Vec<&Word> = simple
            .iter()
            .filter_map(|token| if let ShellToken::Word(word) = token { Some(word) } else { None })
            .skip_while(|word| {
                word.bare().is_some_and(|text| ["then", "do", "else", "{", "!"].contains(&text))
            })
            .collect();
        let [keyword, name, is_in, values @ ..] = words.as_slice() else { return Ok(None) };
        if !matches!(keyword.bare(), Some("for" | "select")) || is_in.bare() != Some("in") {
            return Ok(None);
        }
        let Some(name) = name.bare() else { return Ok(None) };
        let mut start = end;
        while tokens.get(start).is_some_and(is_operator) {
            start += 1;
        }
        if !is_word(tokens.get(start), "do") {
            return Ok(None);
        }
        let Some(close) = closing_word(tokens, start, &["do"], "done") else { return Ok(None) };
        let mut fields = Vec::new();
        for value in values {
            fields.extend(self.expand(value)?);
        }
        // The values beyond are represented by an unknown one: what runs for any value is still
        // found.
        if fields.len() > TURNS {
            fields.truncate(TURNS);
            fields.push(UNKNOWN.to_string());
        }
        // The body of a loop over nothing is walked all the same, so that nothing in it is missed.
        if fields.is_empty() {
            fields.push(UNKNOWN.to_string());
        }
        for field in fields {
            self.budget = self.budget.saturating_sub(1);
            self.vars.insert(name.to_owned(), field);
            self.tokens(&tokens[start + 1..close], None)?;
        }
        Ok(Some(close + 1))
    }

    /// Examines one simple command with its redirections.
    fn simple(&mut self, tokens: &[ShellToken], stdin: Output) -> Result<Output, GuardRefusal> {
        let mut words: Vec<&Word> = Vec::new();
        let mut stdin = stdin;
        for token in tokens {
            match token {
                ShellToken::Word(word) => words.push(word),
                ShellToken::Redirect(redirect) => {
                    if let Some(text) = self.redirect(redirect)? {
                        stdin = Some(text);
                    }
                }
                ShellToken::Operator(_) => {}
            }
        }
        while words
            .first()
            .and_then(|word| word.bare())
            .is_some_and(|text| STEPPED_OVER.contains(&text))
        {
            words.remove(0);
        }
        // The patterns behind `in` are no command. The commands of the branches come as commands of
        // their own, after the `)`.
        if words.first().and_then(|word| word.bare()) == Some("case") {
            for word in &words {
                self.expand(word)?;
            }
            return Ok(None);
        }
        let mut assigned = BTreeMap::new();
        while let Some((name, value)) = words.first().and_then(|word| assignment(word)) {
            let value = self.expand(&value)?.join(" ");
            assigned.insert(name, value);
            words.remove(0);
        }
        let mut cmdline = Vec::new();
        for (place, word) in words.iter().enumerate() {
            let fields = self.expand(word)?;
            // An unset variable as the program is taken for the program it is named after.
            let guess = (place == 0 && fields.first().is_some_and(|field| field.contains(UNKNOWN)))
                .then(|| rule::program_of_variable(word))
                .flatten();
            match guess {
                Some(program) => cmdline.push(program.to_owned()),
                None => cmdline.extend(fields),
            }
        }
        if cmdline.is_empty() {
            // An assignment without a command stays; one before a command is for that command
            // alone.
            self.vars.extend(assigned);
            return Ok(None);
        }
        self.command(&cmdline, &assigned, stdin)
    }

    /// Judges the file that a redirection writes. Returns the text that it provides as standard input.
    fn redirect(&mut self, redirect: &Redirect) -> Result<Output, GuardRefusal> {
        let fields = self.expand(&redirect.target)?;
        match redirect.kind {
            RedirectKind::Text => return Ok(Some(fields.join(" "))),
            RedirectKind::Write => {
                for path in &fields {
                    rule::files::write(path, &format!("> {path}"), self)?;
                }
            }
            RedirectKind::Read => {
                if let Some(output) = fields.first().and_then(|path| self.process_output(path)) {
                    return Ok(Some(output));
                }
            }
            RedirectKind::Duplicate => {}
        }
        Ok(None)
    }

    /// Judges one program with its arguments, and every command that it starts.
    pub(crate) fn command(
        &mut self,
        cmdline: &[String],
        assigned: &BTreeMap<String, String>,
        stdin: Output,
    ) -> Result<Output, GuardRefusal> {
        self.budget = self.budget.saturating_sub(1);
        if self.budget == 0 {
            return Ok(None);
        }
        if self.depth >= DEEPEST {
            return self.unparsed(&cmdline.join(" "), "it is nested too deeply").map(|()| None);
        }
        let Some(program) = cmdline.first() else { return Ok(None) };
        if let Some(text) = self.aliases.get(program).cloned() {
            // As in a shell, an alias is not expanded within its own expansion; `alias git='git -c
            // x=y'` would not end otherwise.
            self.aliases.remove(program);
            // The arguments are expanded already, so they are quoted, or they would be expanded a
            // second time.
            let line = format!("{text} {}", quoted(&cmdline[1..]));
            let result = self.script(&line, stdin);
            self.aliases.insert(program.clone(), text);
            return result;
        }
        if let Some(body) = self.functions.get(program).cloned() {
            self.depth += 1;
            let positional = std::mem::replace(&mut self.positional, cmdline[1..].to_vec());
            let result = self.tokens(&body, stdin);
            self.positional = positional;
            self.depth -= 1;
            return result;
        }
        if self.builtin(cmdline)? {
            return Ok(None);
        }
        // The program itself comes before what it starts: `find -delete` has a rule of its own and may
        // have an `-exec` beside it.
        rule::judge(cmdline, assigned, self)?;
        for part in nested(cmdline, stdin.as_deref()) {
            self.start(part, assigned)?;
        }
        Ok(output_of(cmdline, stdin))
    }

    /// Examines a command that another command starts.
    fn start(
        &mut self,
        part: Nested,
        assigned: &BTreeMap<String, String>,
    ) -> Result<(), GuardRefusal> {
        self.depth += 1;
        let result = match part {
            Nested::Command { cmdline, env, stdin } => {
                // Variables before a wrapper reach the command in it: `GIT_DIR=/w/repo/.git timeout
                // 5 git commit`.
                let mut assigned = assigned.clone();
                assigned.extend(env);
                self.command(&cmdline, &assigned, stdin).map(drop)
            }
            Nested::Script { text, args, stdin } => {
                // A separate shell does not change the state of this one.
                let mut child = self.clone();
                child.assign(assigned);
                let mut args = args.into_iter();
                if let Some(zero) = args.next() {
                    child.vars.insert("0".to_owned(), zero);
                }
                child.positional = args.collect();
                let result = child.script(&text, stdin);
                self.take_over(child);
                result.map(drop)
            }
            Nested::SameShell(text) => self.script(&text, None).map(drop),
            Nested::File(path) => {
                if let Some(text) = self.process_output(&path) {
                    let mut child = self.clone();
                    let result = child.script(&text, None);
                    self.take_over(child);
                    result.map(drop)
                } else {
                    self.not_seen(format!("the content of the script {path} is not read"));
                    Ok(())
                }
            }
            Nested::Code(text) => crate::tool_guard::code::judge(&text, self),
        };
        self.depth -= 1;
        result
    }

    /// Takes over the remaining budget and the remarks of a copied walk.
    // Without that each copy would have the whole budget, and a script that starts itself twice would take time
    // exponential in the nesting.
    pub(crate) fn take_over(&mut self, child: ShellWalk<'a>) {
        self.budget = child.budget;
        for what in child.unseen {
            self.not_seen(what);
        }
    }

    /// Applies shell builtins that change the meaning of later commands. Returns true if it was one.
    fn builtin(&mut self, cmdline: &[String]) -> Result<bool, GuardRefusal> {
        let args = &cmdline[1..];
        match cmdline[0].as_str() {
            "cd" | "pushd" => {
                let to = args.iter().find(|arg| !arg.starts_with('-') || *arg == "-");
                self.cwd = match to.map(String::as_str) {
                    None => self.scope.home.clone(),
                    Some(to) => self.resolve(to),
                };
            }
            // The stack of directories is not kept. With an unknown directory relative paths are
            // not judged.
            "popd" => self.cwd = None,
            "export" | "declare" | "local" | "typeset" | "readonly" => {
                for arg in args {
                    if let Some((name, value)) = arg.split_once('=') {
                        self.vars.insert(name.to_owned(), value.to_owned());
                    }
                }
            }
            "unset" => {
                for name in args {
                    self.vars.remove(name);
                }
            }
            "read" | "mapfile" | "readarray" => {
                for name in args {
                    self.vars.insert(name.clone(), UNKNOWN.to_string());
                }
            }
            "alias" => {
                for arg in args {
                    if let Some((name, value)) = arg.split_once('=') {
                        // Judged when it is set: an alias that pushes has no other use, and it may
                        // be called by text that is not seen.
                        self.clone().script(value, None)?;
                        self.aliases.insert(name.to_owned(), value.to_owned());
                    }
                }
            }
            "set" => {
                if let Some(split) = args.iter().position(|arg| arg == "--") {
                    self.positional = args[split + 1..].to_vec();
                }
            }
            "shift" => {
                if !self.positional.is_empty() {
                    self.positional.remove(0);
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Resolves a path to an absolute one, if the working directory is known.
    pub(crate) fn resolve(&self, path: &str) -> Option<Utf8PathBuf> {
        if path.contains(UNKNOWN) || path == "-" || path.is_empty() {
            return None;
        }
        if path.starts_with('/') {
            return Some(crate::tool_guard::scope::normal(Utf8Path::new(path)));
        }
        self.cwd.as_ref().map(|cwd| crate::tool_guard::scope::normal(&cwd.join(path)))
    }

    /// Returns the value of a variable, from the text or the environment.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        match name {
            // The parent of a builder's shell is the agent, whose end is the end of the builder.
            "PPID" => Some(DRIVER_PID.to_owned()),
            "PWD" => self.cwd.as_ref().map(|cwd| cwd.as_str().to_owned()),
            // So that `git${IFS}push` is split as a shell splits it.
            "IFS" => Some(" ".to_owned()),
            _ => self.vars.get(name).cloned(),
        }
    }

    fn process_output(&self, path: &str) -> Output {
        let number: usize = path.strip_prefix(PROCESS)?.parse().ok()?;
        self.outputs.get(number).cloned().flatten()
    }

    /// Expands a word into fields. Substitutions in it are walked.
    fn expand(&mut self, word: &Word) -> Result<Vec<String>, GuardRefusal> {
        let mut fields = Fields::default();
        for (place, piece) in word.0.iter().enumerate() {
            match piece {
                Piece::Text { text, quoted } => {
                    fields.append(&self.tilde(text, place == 0 && !quoted));
                }
                Piece::Variable { name, default, altered, quoted } => {
                    self.expand_variable(name, default.as_ref(), *altered, *quoted, &mut fields)?;
                }
                Piece::Command { script, quoted } => {
                    let output = self.substitute(script)?;
                    let text = output.unwrap_or_else(|| UNKNOWN.to_string());
                    let text = text.trim_end_matches('\n');
                    if *quoted { fields.append(text) } else { fields.split(text) }
                }
                Piece::Process { script } => {
                    let output = self.substitute(script)?;
                    fields.append(&format!("{PROCESS}{}", self.outputs.len()));
                    self.outputs.push(output);
                }
                Piece::Opaque(inner) => {
                    self.expand(inner)?;
                    fields.append(&UNKNOWN.to_string());
                }
            }
        }
        Ok(match word.bare() {
            Some(text) if text.contains('{') => {
                fields.finish().iter().flat_map(|f| braces(f, 0)).collect()
            }
            _ => fields.finish(),
        })
    }

    fn expand_variable(
        &mut self,
        name: &str,
        default: Option<&Word>,
        altered: bool,
        quoted: bool,
        fields: &mut Fields,
    ) -> Result<(), GuardRefusal> {
        if matches!(name, "@" | "*") && !self.positional.is_empty() {
            for (place, value) in self.positional.clone().iter().enumerate() {
                if place > 0 {
                    fields.next();
                }
                fields.append(value);
            }
            return Ok(());
        }
        let default = default.map(|word| self.expand(word)).transpose()?;
        // `$0` is kept as an ordinary variable.
        let number = name.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let value = match number {
            Some(number) => self.positional.get(number).cloned(),
            None => self.variable(name),
        };
        let value =
            if altered { None } else { value.or_else(|| default.map(|fields| fields.join(" "))) };
        let value = value.unwrap_or_else(|| UNKNOWN.to_string());
        if quoted {
            fields.append(&value);
        } else {
            fields.split(&value);
        }
        Ok(())
    }

    fn tilde(&self, text: &str, at_start: bool) -> String {
        let rest = text.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
        match (rest, &self.scope.home) {
            (Some(rest), Some(home)) if at_start => format!("{home}{rest}"),
            _ => text.to_owned(),
        }
    }

    /// Walks a command substitution in a copy of the state.
    fn substitute(&mut self, script: &str) -> Result<Output, GuardRefusal> {
        let mut child = self.clone();
        let output = child.script(script, None)?;
        self.take_over(child);
        Ok(output)
    }
}

/// The prefix of the path that stands for a process substitution, followed by its number.
const PROCESS: &str = "/dev/fd/\u{FFFC}";

fn is_operator(token: &ShellToken) -> bool {
    matches!(token, ShellToken::Operator(_))
}

fn is_word(token: Option<&ShellToken>, text: &str) -> bool {
    matches!(token, Some(ShellToken::Word(word)) if word.bare() == Some(text))
}

fn closing_parenthesis(tokens: &[ShellToken], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token {
            ShellToken::Operator(Operator::Open) => depth += 1,
            ShellToken::Operator(Operator::Close) => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at);
                }
            }
            ShellToken::Operator(Operator::Then | Operator::Pipe)
            | ShellToken::Word(_)
            | ShellToken::Redirect(_) => {}
        }
    }
    None
}

/// Returns the position of the reserved word `close` that belongs to the opening one at `open`.
fn closing_word(
    tokens: &[ShellToken],
    open: usize,
    opening: &[&str],
    close: &str,
) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at_command = true;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        let text = match token {
            ShellToken::Operator(_) => {
                at_command = true;
                continue;
            }
            ShellToken::Redirect(_) => continue,
            ShellToken::Word(word) => word.bare().unwrap_or_default(),
        };
        if !at_command {
            continue;
        }
        if opening.contains(&text) {
            depth += 1;
        } else if depth == 0 {
            return None;
        } else if text == close {
            depth -= 1;
            if depth == 0 {
                return Some(at);
            }
        }
        at_command = STEPPED_OVER.contains(&text);
    }
    None
}

/// Returns the name and the value of a word that assigns a variable.
fn assignment(word: &Word) -> Option<(String, Word)> {
    let Some(Piece::Text { text, quoted: false }) = word.0.first() else { return None };
    let (name, value) = text.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let name = name.split_once('[').map_or(name, |(array, _)| array);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_name {
        return None;
    }
    let mut pieces = vec![Piece::Text { text: value.to_owned(), quoted: false }];
    pieces.extend(word.0[1..].iter().cloned());
    Some((name.to_owned(), Word(pieces)))
}

/// Quotes arguments so that a shell reads them back unchanged.
pub(crate) fn quoted<S: AsRef<str>>(args: &[S]) -> String {
    let quote = |arg: &S| format!("'{}'", arg.as_ref().replace('\'', "'\\''"));
    args.iter().map(quote).collect::<Vec<_>>().join(" ")
}
