//! `lookaside-lab report --html` as a user runs it, on the results that are kept in the repository.

use std::path::Path;
use std::process::{Command, Output};

fn report(arguments: &[&str]) -> Output {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lookaside-lab"));
    command.current_dir(repository).arg("report").args(arguments).output().unwrap()
}

#[test]
fn the_page_shows_what_the_text_tells() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.html");
    let output = report(&["memc3-table3", "--html", path.to_str().unwrap()]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.contains("page.html"), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("after MemC3 (NSDI 2013), Table 3")
            && page.contains("After MemC3 (NSDI 2013), Table 3")
    );
    assert_eq!(page.matches("<section id=").count(), 1);
    assert!(page.contains("<svg") && !page.contains("<script"));

    // All of them, those of the comparison with other programs' indexes among them.
    let output = report(&["--html", path.to_str().unwrap()]);
    assert!(output.status.success());
    let page = std::fs::read_to_string(&path).unwrap();
    for name in ["memc3-table3", "peers-index"] {
        assert!(page.contains(&format!("<a href=\"page-pages/{name}.html\">")), "{name} is not in\n{page}");
        let own = std::fs::read_to_string(folder.path().join(format!("page-pages/{name}.html"))).unwrap();
        assert!(own.contains(&format!("<section id=\"{name}\">")) && own.contains("<svg"));
    }
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("memc3-table3: ") && text.contains("peers-index: "), "{text}");
    let alone = report(&["peers-index"]);
    assert!(alone.status.success() && text.contains(&*String::from_utf8_lossy(&alone.stdout)));
}

#[test]
fn a_page_that_cannot_be_written_is_said_to_be_one() {
    let output = report(&["memc3-table3", "--html", "/nowhere/at/all.html"]);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && words.contains("/nowhere/at/all.html"), "{words}");
}
