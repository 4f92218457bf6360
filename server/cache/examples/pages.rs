//! A cache before something slow: pages that are rendered once and kept for a while.
//!
//! `cargo run -p lookaside-cache --example pages`

use std::thread;
use std::time::{Duration, Instant};

use lookaside_cache::{Cache, StoreError};

/// What takes long: here it sleeps.
fn render(path: &str) -> Vec<u8> {
    thread::sleep(Duration::from_millis(20));
    format!("<h1>{path}</h1>").into_bytes()
}

/// The page, from the cache or else rendered, and then kept for ten minutes.
fn page(cache: &Cache, path: &str) -> Result<Vec<u8>, StoreError> {
    if let Some(page) = cache.get(path.as_bytes()) {
        return Ok(page);
    }
    let page = render(path);
    cache.set(path.as_bytes(), &page, Duration::from_secs(600))?;
    Ok(page)
}

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cache = Cache::with_limit(64 << 20)?;
    for path in ["/", "/about", "/", "/about"] {
        let begun = Instant::now();
        let page = page(&cache, path)?;
        println!("{path}: {} bytes in {:?}", page.len(), begun.elapsed());
    }
    // What has changed is rendered anew.
    cache.delete(b"/about");
    println!("{} pages are kept", cache.len());
    Ok(())
}
