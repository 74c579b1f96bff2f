//! The console's pages in a real browser: a workload handed in, watched, and every page looked at
//! in two widths and two colours, with a name that would be a script if it were not shown as text.

use plimsoll_testkit::browser::{Page, View};

use crate::console::Served;

/// A run of two seconds on the null target.
const WORKLOAD: &str = "<workload name=\"&lt;img src=x onerror=alert(1)&gt;\">\
    <storage type=\"none\"/><workflow><workstage name=\"main\">\
    <work name=\"main\" workers=\"2\" runtime=\"2\">\
    <operation type=\"read\" ratio=\"80\" config=\"containers=u(1,2);objects=u(1,9)\"/>\
    <operation type=\"write\" ratio=\"20\" \
    config=\"containers=u(1,2);objects=u(1,9);sizes=c(1)KB\"/>\
    </work></workstage></workflow></workload>";
const NAME: &str = "<img src=x onerror=alert(1)>";

/// Every page, by its part behind the `#`.
const PAGES: [&str; 10] = [
    "/",
    "/history",
    "/runs/w1",
    "/runs/w1/timeline",
    "/matrix?runs=w1,w2",
    "/compare?before=w1&after=w2",
    "/submit",
    "/make",
    "/make-matrix",
    "/agents",
];

const VIEWS: [View; 3] = [
    View { width: 1600, height: 1000, is_dark: false },
    View { width: 400, height: 800, is_dark: true },
    View { width: 400, height: 800, is_dark: false },
];

/// Hands the workload in by the page, and waits on the run's own page until it is over.
fn submit(page: &mut Page, base: &str, file: &std::path::Path, id: &str) {
    page.go(&format!("{base}#/submit"));
    page.choose_files("[data-test=file]", &[file]);
    let button = "[...document.querySelectorAll('button')].find(of => \
                  /^Submit/.test(of.textContent.trim()) && !of.disabled)";
    page.until(&format!(
        "document.querySelector('textarea').value.includes('workload') && !!{button}"
    ));
    page.eval(&format!("{button}.click()"));
    page.until(&format!("location.hash.startsWith('#/runs/{id}')"));
    page.until("/finished/.test(document.querySelector('main').innerText)");
}

#[test]
fn every_page_is_clicked_through() {
    let Some(mut page) = Page::open(VIEWS[0]) else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("w.xml");
    std::fs::write(&file, WORKLOAD).unwrap();
    let served = Served::start(directory.path(), "");
    let base = format!("http://{}/console/", served.address);

    // The root leads to the pages, and the keyboard to their content first.
    page.go(&format!("http://{}/", served.address));
    page.until("location.pathname === '/console/' && !!document.querySelector('h1')?.innerText");
    page.press("Tab");
    page.until("/Skip to the content/.test(document.activeElement?.innerText)");

    submit(&mut page, &base, &file, "w1");
    submit(&mut page, &base, &file, "w2");
    let shown = page.eval("document.body.innerText");
    assert!(shown.as_str().unwrap().contains(NAME), "the name is text: {shown}");

    for view in VIEWS {
        page.show_as(view);
        for path in PAGES {
            page.go(&format!("{base}#{path}"));
            page.until("!!document.querySelector('h1')?.innerText");
            page.until("!/Loading/.test(document.querySelector('main').innerText)");
            let over = page.eval("document.documentElement.scrollWidth - window.innerWidth");
            assert!(over.as_i64().unwrap() <= 0, "{path} at {view:?} is {over} too wide");
            assert_eq!(page.eval("document.querySelector('img[src=x]')"), serde_json::Value::Null);
        }
    }
    // A text that is no workload is refused with its line.
    page.go(&format!("{base}#/submit"));
    page.until("!!document.querySelector('textarea')");
    page.fill("textarea", "<workload name=\"x\">\n<bad");
    page.eval(
        "[...document.querySelectorAll('button')].find(of => /^Check/.test(of.textContent.trim()))\
         .click()",
    );
    page.until("/cannot parse the xml configuration/.test(document.body.innerText)");
    assert_eq!(page.complaints(), Vec::<String>::new());
    assert_eq!(page.hosts_asked().join(" "), served.address, "and nobody else was asked");
}
