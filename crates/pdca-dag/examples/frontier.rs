//! Plans three items, two of which can write the same file, and prints the order of their starts.

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use pdca_dag::{
    Completion, Declared, Frontier, Item, Options, Outside, Plan, SourceLocation, Touch,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let place = |line| SourceLocation::new("items.txt", line);
    let item = |id: &str, glob: &str, line| -> Result<Item, Box<dyn std::error::Error>> {
        let touch = Touch { glob: glob.to_owned(), place: place(line), is_file: false };
        Ok(Item { touches: vec![touch], ..Item::new(id.parse()?, place(line)) })
    };
    let mut docs = item("3", "docs", 3)?;
    docs.depends_on.push(Declared::new("1".parse()?, place(3)));
    let items = vec![item("1", "src/{a,b}.py", 1)?, item("2", "src/*.py", 2)?, docs];

    let plan = Plan::new(items, &Outside::default(), Options::default())?;
    let mut frontier = Frontier::new(&plan);
    loop {
        let mut started = Vec::new();
        while let Some(id) = frontier.start_next() {
            started.push(id);
        }
        if started.is_empty() {
            return Ok(());
        }
        for id in started {
            println!("{id}");
            frontier.ended(&id, Completion::Complete)?;
        }
    }
}
