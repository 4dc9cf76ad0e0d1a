//! The tables: `attempts.txt` and `layouts.txt`.

pub(crate) const ATTEMPTS: &str = include_str!("attempts.txt");
const LAYOUTS: &str = include_str!("layouts.txt");

/// The roles whose children are confined as a gate is. Each makes the attempts of `gate`.
pub(crate) const AS_GATE: [&str; 4] = ["gate", "workspace-row", "fix", "hydrate"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    NotKept,
    Noticed,
    Enforced,
}

impl Verdict {
    fn of(word: &str) -> Self {
        match word {
            "enforced" => Self::Enforced,
            "noticed" => Self::Noticed,
            "not kept" => Self::NotKept,
            other => panic!("{other:?} is no verdict"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wall {
    Landlock,
    Bwrap,
}

impl Wall {
    /// The name in the configuration.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Landlock => "landlock",
            Self::Bwrap => "bwrap",
        }
    }
}

/// One attempt.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) name: &'static str,
    pub(crate) roles: Vec<Tried>,
    /// It does not depend on the layout, and is made in the first one only.
    pub(crate) once: bool,
    pub(crate) landlock: Verdict,
    pub(crate) bwrap: Verdict,
    /// The commands that end with 0 if it got through.
    pub(crate) commands: &'static str,
    /// The commands of the role that begins it.
    pub(crate) begun: &'static str,
}

/// The role that makes an attempt, and the one that began it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tried {
    pub(crate) by: &'static str,
    pub(crate) begun_by: Option<&'static str>,
}

impl Tried {
    /// Returns the name of an attempt in the output of `run.sh`.
    pub(crate) fn name(&self, attempt: &Attempt) -> String {
        match self.begun_by {
            Some(begun_by) => format!("{}@{begun_by}", attempt.name),
            None => attempt.name.to_owned(),
        }
    }
}

impl Attempt {
    pub(crate) fn expected(&self, wall: Wall) -> Verdict {
        match wall {
            Wall::Landlock => self.landlock,
            Wall::Bwrap => self.bwrap,
        }
    }
}

/// Returns all attempts of the table.
pub(crate) fn attempts() -> Vec<Attempt> {
    let (everywhere, once) = ATTEMPTS.split_once("\n# once: ").expect("the table has two parts");
    let of = |part: &'static str, once: bool| {
        // The first block of each part is about it.
        part.split("\n\n").skip(1).map(move |block| attempt(block.trim_end(), once))
    };
    of(everywhere, false).chain(of(once, true)).collect()
}

/// Returns the attempts that are made in a layout.
pub(crate) fn attempts_in(layout: &str) -> Vec<Attempt> {
    let is_first = layouts().first() == Some(&layout);
    attempts().into_iter().filter(|attempt| is_first || !attempt.once).collect()
}

fn attempt(block: &'static str, once: bool) -> Attempt {
    let (head, body) = block.split_once('\n').expect("an attempt has commands");
    let fields: Vec<&str> = head.split(" | ").collect();
    let [name, who, landlock, bwrap, _title, reason @ ..] = &fields[..] else {
        panic!("at least five fields: {head}")
    };
    let (landlock, bwrap) = (Verdict::of(landlock), Verdict::of(bwrap));
    let is_held = landlock == Verdict::Enforced && bwrap == Verdict::Enforced;
    assert_eq!(reason.len(), usize::from(!is_held), "a reason stands where one is needed: {head}");
    let (begun, commands) = body.split_once("\n--\n").unwrap_or(("", body));
    let roles: Vec<Tried> = who.split(' ').flat_map(tried).collect();
    let is_chain = |one: &Tried| one.begun_by.is_some();
    assert!(roles.iter().all(|one| is_chain(one) != begun.is_empty()), "{head}");
    Attempt { name, roles, once, landlock, bwrap, commands, begun }
}

fn tried(word: &'static str) -> Vec<Tried> {
    match word.split_once('>') {
        Some((begun_by, by)) => vec![Tried { by, begun_by: Some(begun_by) }],
        None if word == "gate" => {
            AS_GATE.into_iter().map(|by| Tried { by, begun_by: None }).collect()
        }
        None => vec![Tried { by: word, begun_by: None }],
    }
}

/// Returns the names of the layouts.
pub(crate) fn layouts() -> Vec<&'static str> {
    let lines = LAYOUTS.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_once(" | ").expect("a name and a description").0).collect()
}
