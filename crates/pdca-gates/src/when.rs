//! The condition under which a check applies to a brief.

pub use pdca_state::{When, WhenText};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GatesConfig;

    fn checks(text: &str) -> GatesConfig {
        toml::from_str(text).expect("the test's text is of the right shape")
    }

    fn when(text: &str) -> (String, String) {
        let When { field, substring, .. } = WhenText::Text(text.to_owned()).read();
        (field, substring.0.concat())
    }

    #[test]
    fn both_spellings_of_when_are_read() {
        let checks = checks(
            "checks = [{ id = 'a', tier = 'T1', cmd = 'true', \
             when = { field = 'Surfaces', substring = 'gui' } }]",
        )
        .checks()
        .unwrap();
        let table = checks.as_slice()[0].when.clone().unwrap();
        assert_eq!(table, When::contains("Surfaces", "gui"));
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(when("Surfaces gui"), pair("Surfaces", "gui"));
        assert_eq!(when("Surfaces: the gui"), pair("Surfaces", "the gui"));
        assert_eq!(when("Disposition hint fix"), pair("Disposition hint", "fix"));
        assert_eq!(
            when("Repo + branch target: own/repo"),
            pair("Repo + branch target", "own/repo")
        );
        assert_eq!(when("My own label: x"), pair("My own label", "x"));
        assert_eq!(when("Surfaces http://x"), pair("Surfaces", "http://x"));
        assert_eq!(when("Surfaces"), pair("Surfaces", ""));
    }

    #[test]
    fn a_malformed_when_says_what_is_expected() {
        let check = "checks = [{ id = 'a', tier = 'T1', cmd = 'true', when = { fild = 'x' } }]";
        let error = toml::from_str::<GatesConfig>(check).unwrap_err().to_string();
        assert!(error.contains("{ field = \"Label\", substring = \"text\" }"), "{error}");
    }
}
