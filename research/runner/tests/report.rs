//! `lookaside-lab report --html` as a user runs it, on the results that are kept in the repository.

use crate::command::{is_refused, lab, output, said_by};

#[test]
fn the_page_shows_what_the_text_tells() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.html");
    let html = path.to_str().unwrap();
    let (succeeded, text, said) = output(&mut lab(&["report", "memc3-table3", "--html", html]));
    assert!(succeeded && said.contains("page.html"), "{said}");
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("after MemC3 (NSDI 2013), Table 3")
            && page.contains("After MemC3 (NSDI 2013), Table 3")
    );
    assert_eq!(page.matches("<section id=").count(), 1);
    assert!(page.contains("<svg") && !page.contains("<script"));

    // All of them, those of the comparison with other programs' indexes among them.
    let text = said_by(&mut lab(&["report", "--html", html]));
    let page = std::fs::read_to_string(&path).unwrap();
    for name in ["memc3-table3", "peers-index"] {
        assert!(page.contains(&format!("<a href=\"page-pages/{name}.html\">")), "{name} is not in\n{page}");
        let own = std::fs::read_to_string(folder.path().join(format!("page-pages/{name}.html"))).unwrap();
        assert!(own.contains(&format!("<section id=\"{name}\">")) && own.contains("<svg"));
    }
    assert!(text.contains("memc3-table3: ") && text.contains("peers-index: "), "{text}");
    assert!(text.contains(&said_by(&mut lab(&["report", "peers-index"]))));
}

#[test]
fn a_page_that_cannot_be_written_is_said_to_be_one() {
    let path = "/nowhere/at/all.html";
    is_refused(&mut lab(&["report", "memc3-table3", "--html", path]), path);
}

#[test]
fn an_experiment_without_a_picture_of_its_own_is_said_to_have_none() {
    is_refused(
        &mut lab(&["report", "memc3-table3", "--svg", "/nowhere/at/all.svg"]),
        "asks for no [picture]",
    );
    is_refused(
        &mut lab(&["report", "memc3-policies", "--svg", "/nowhere/at/all.svg"]),
        "/nowhere/at/all.svg",
    );
}
