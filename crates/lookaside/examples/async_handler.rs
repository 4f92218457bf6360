//! An asynchronous handler in front of a slow store: what it is to do with a map in a program of tasks.
//!
//! ```text
//! cargo run --release -p lookaside --example async_handler
//! ```
//!
//! A reader stays on its thread, and a task may go on on another after each `.await`: a future that held a reader while
//! it waits would not be `Send`, and executors do not take it. So a handler looks things up by calls that pin for
//! themselves ([`Map::get_with`], which shows the value to a closure), takes what it needs with it as a clone, and
//! waits with nothing in its hands. Values that are dear to clone are in an `Arc`.
//!
//! That several tasks do not ask the store for the same thing at once, each key's value is a cell: whoever puts it in
//! first ([`Map::get_or_insert_with`], whose closure does not wait) asks the store, and the others wait for the cell.
//! With tokio the cell is its `OnceCell`, which also lets another load where one has failed; here cell and executor are
//! a few lines each, for this has no dependencies.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use lookaside::Map;

/// What tasks share.
struct Site {
    pages: Map<u64, Arc<Cell>>,
    store: Store,
}

impl Site {
    /// The handler. With axum: `async fn page(State(site): State<Arc<Site>>, Path(number): Path<u64>) -> String`.
    async fn page(self: Arc<Self>, number: u64) -> Arc<str> {
        // Hot pages: one line of the table, the entry, and a clone; pinned for no longer than the closure runs.
        if let Some(Some(page)) = self.pages.get_with(&number, |cell| cell.get()) {
            return page;
        }
        let cell = self.pages.get_or_insert_with(number, || Arc::new(Cell::default()));
        if cell.is_mine() {
            let page = self.store.load(number).await;
            cell.set(page.clone());
            return page;
        }
        Wait(cell).await
    }

    /// A page that is no longer true.
    fn forget(&self, number: u64) {
        self.pages.remove(&number);
    }
}

/// A page that is there, or that somebody is loading.
#[derive(Default)]
struct Cell(Mutex<Loading>);

#[derive(Default)]
struct Loading {
    is_taken: bool,
    page: Option<Arc<str>>,
    waiting: Vec<Waker>,
}

impl Cell {
    fn get(&self) -> Option<Arc<str>> {
        self.0.lock().expect("nobody panics under it").page.clone()
    }

    /// Whether the caller is the one to load it.
    fn is_mine(&self) -> bool {
        !std::mem::replace(&mut self.0.lock().expect("nobody panics under it").is_taken, true)
    }

    fn set(&self, page: Arc<str>) {
        let mut loading = self.0.lock().expect("nobody panics under it");
        loading.page = Some(page);
        loading.waiting.drain(..).for_each(Waker::wake);
    }
}

/// Waits for a page that another task is loading.
struct Wait(Arc<Cell>);

impl Future for Wait {
    type Output = Arc<str>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Arc<str>> {
        let mut loading = self.0.0.lock().expect("nobody panics under it");
        match &loading.page {
            Some(page) => Poll::Ready(page.clone()),
            None => {
                loading.waiting.push(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// A slow one.
#[derive(Default)]
struct Store {
    loaded: AtomicUsize,
}

impl Store {
    async fn load(&self, number: u64) -> Arc<str> {
        self.loaded.fetch_add(1, Ordering::Relaxed);
        let answer = Arc::new(Cell::default());
        std::thread::spawn({
            let answer = Arc::clone(&answer);
            move || {
                std::thread::sleep(Duration::from_millis(2));
                answer.set(format!("<h1>Page {number}</h1>").into());
            }
        });
        Wait(answer).await
    }
}

/// Tasks that can go on, for threads to take.
#[derive(Default)]
struct Executor {
    ready: Mutex<VecDeque<Arc<Task>>>,
    more: Condvar,
    left: AtomicUsize,
}

struct Task {
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    executor: Arc<Executor>,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let executor = Arc::clone(&self.executor);
        executor.ready.lock().expect("nobody panics under it").push_back(self);
        executor.more.notify_all();
    }
}

impl Executor {
    /// As `tokio::spawn`: takes what is `Send`, and so nothing that holds a reader while it waits.
    fn spawn(self: &Arc<Self>, future: impl Future<Output = ()> + Send + 'static) {
        self.left.fetch_add(1, Ordering::SeqCst);
        let future = Mutex::new(Some(Box::pin(future) as Pin<Box<dyn Future<Output = ()> + Send>>));
        Arc::new(Task { future, executor: Arc::clone(self) }).wake();
    }

    /// Runs tasks until all have ended.
    fn run(&self) {
        let mut ready = self.ready.lock().expect("nobody panics under it");
        while self.left.load(Ordering::SeqCst) > 0 {
            let Some(task) = ready.pop_front() else {
                ready = self.more.wait(ready).expect("nobody panics under it");
                continue;
            };
            drop(ready);
            let waker = Waker::from(Arc::clone(&task));
            let mut future = task.future.lock().expect("a task that panics ends the program");
            let mut context = Context::from_waker(&waker);
            let done = future.as_mut().is_some_and(|future| future.as_mut().poll(&mut context).is_ready());
            if done {
                *future = None;
                self.left.fetch_sub(1, Ordering::SeqCst);
            }
            drop(future);
            ready = self.ready.lock().expect("nobody panics under it");
            self.more.notify_all();
        }
    }
}

fn main() {
    let site = Arc::new(Site { pages: Map::with_capacity(1000), store: Store::default() });
    for round in ["none kept", "all kept", "one forgotten"] {
        if round == "one forgotten" {
            site.forget(7);
        }
        let executor = Arc::new(Executor::default());
        for request in 0..800 {
            let (site, number) = (Arc::clone(&site), request % 100);
            executor.spawn(async move {
                let page = site.page(number).await;
                assert_eq!(*page, *format!("<h1>Page {number}</h1>"));
            });
        }
        std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(|| executor.run()))));
        let loaded = site.store.loaded.swap(0, Ordering::Relaxed);
        println!("800 requests for 100 pages, {round}: {loaded} loaded");
    }
}
