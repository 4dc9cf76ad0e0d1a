//! Plans three items, two of which can write the same file, and prints the order of their starts.

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use pdca_dag::{
    Completion, Declared, Frontier, Item, Options, Outside, Plan, SourceLocation, Touch,
};

type Failure = Box<dyn std::error::Error>;

/// Carries three items out, and returns them as they started: all that may start at once in one list.
pub(crate) fn starts() -> Result<Vec<Vec<String>>, Failure> {
    let place = |line| SourceLocation::new("items.txt", line);
    let item = |id: &str, glob: &str, line| -> Result<Item, Failure> {
        let touch = Touch { glob: glob.to_owned(), place: place(line), is_file: false };
        Ok(Item { touches: vec![touch], ..Item::new(id.parse()?, place(line)) })
    };
    let mut docs = item("3", "docs", 3)?;
    docs.depends_on.push(Declared::new("1".parse()?, place(3)));
    let items = vec![item("1", "src/{a,b}.py", 1)?, item("2", "src/*.py", 2)?, docs];

    let plan = Plan::new(items, &Outside::default(), Options::default())?;
    let mut frontier = Frontier::new(&plan);
    let mut rounds = Vec::new();
    loop {
        let started: Vec<_> = std::iter::from_fn(|| frontier.start_next()).collect();
        if started.is_empty() {
            return Ok(rounds);
        }
        for id in &started {
            frontier.ended(id, Completion::Complete)?;
        }
        rounds.push(started.iter().map(ToString::to_string).collect());
    }
}

fn main() -> Result<(), Failure> {
    for round in starts()? {
        println!("{}", round.join(" "));
    }
    Ok(())
}
