//! Listing items: `lru_crawler`, `stats cachedump`, `stats sizes`. It is checked here, and done beside the workers.

use protocol::binary::Header;
use protocol::{Cachedump, ErrorReply, LruCrawlerRequest, reply};

use super::{After, Executor, answer};
use crate::dump::{Classes, Dump, Listing};
use crate::executor::Errand;
use crate::output::Output;

/// What is done for one word of `lru_crawler`.
enum Crawler {
    Answered,
    Lists(Dump),
}

impl Executor {
    /// Lists keys, or sets a number of the crawler.
    pub(super) fn lru_crawler(
        &mut self,
        request: LruCrawlerRequest<'_>,
        noreply: bool,
        output: &mut Output,
    ) -> After {
        match self.crawl(request) {
            Ok(Crawler::Answered) => answer(output, noreply, reply::OK),
            Ok(Crawler::Lists(dump)) => {
                output.bytes().extend_from_slice(reply::OK);
                return self.goes_aside(Errand::Dump(Box::new(dump)));
            }
            Err(error) => answer(output, noreply, error.bytes()),
        }
        After::GoOn
    }

    fn crawl(&mut self, request: LruCrawlerRequest<'_>) -> Result<Crawler, ErrorReply> {
        let tuning = &self.shared.tuning;
        match request {
            LruCrawlerRequest::Enable if !tuning.switch_crawler(true) => return Err(ErrorReply::CrawlerRuns),
            LruCrawlerRequest::Enable => {}
            LruCrawlerRequest::Disable => _ = tuning.switch_crawler(false),
            LruCrawlerRequest::Sleep(microseconds) => tuning.set_crawler_sleep(microseconds),
            LruCrawlerRequest::ToCrawl(items) => tuning.set_crawler_most(items),
            _ if !tuning.has_crawler() => return Err(ErrorReply::LruCrawlerDisabled),
            // What has expired is removed all the time: there is nothing left to do.
            LruCrawlerRequest::Crawl(b"hash") => return Err(ErrorReply::CrawlerFailed),
            LruCrawlerRequest::Crawl(classes) => {
                self.classes(classes)?;
                drop(self.shared.crawling.begin().ok_or(ErrorReply::CrawlerBusy)?);
            }
            LruCrawlerRequest::Metadump(_) if !self.shared.settings.dumps_allowed => {
                return Err(ErrorReply::MetadumpNotAllowed);
            }
            LruCrawlerRequest::Mgdump(_) if !self.shared.settings.dumps_allowed => {
                return Err(ErrorReply::MgdumpNotAllowed);
            }
            LruCrawlerRequest::Metadump(classes) => {
                return self.lists(Listing::Meta(self.classes(classes)?));
            }
            LruCrawlerRequest::Mgdump(classes) => return self.lists(Listing::Mg(self.classes(classes)?)),
        }
        Ok(Crawler::Answered)
    }

    fn lists(&self, listing: Listing) -> Result<Crawler, ErrorReply> {
        let crawl = self.shared.crawling.begin().ok_or(ErrorReply::CrawlerBusy)?;
        Ok(Crawler::Lists(Dump::new(listing, Some(crawl), &self.shared)))
    }

    /// `all`, `hash`, or numbers from 1 on with commas between them.
    fn classes(&self, text: &[u8]) -> Result<Classes, ErrorReply> {
        if text == b"all" || text == b"hash" {
            return Ok(Classes::All);
        }
        let numbers = text.split(|&byte| byte == b',').filter(|number| !number.is_empty());
        let mut classes: Vec<u8> = numbers
            .map(|number| {
                let number: u8 = str::from_utf8(number).ok()?.parse().ok()?;
                number.checked_sub(1).filter(|&class| self.has_class(class))
            })
            .collect::<Option<_>>()
            .ok_or(ErrorReply::CrawlerBadClass)?;
        classes.sort_unstable();
        classes.dedup();
        if classes.is_empty() { Err(ErrorReply::CrawlerNotStarted) } else { Ok(Classes::These(classes)) }
    }

    /// Lists some items of a class.
    pub(super) fn cachedump(&mut self, request: Result<Cachedump, ErrorReply>, output: &mut Output) -> After {
        if !self.shared.settings.dumps_allowed {
            return refuse(ErrorReply::StatsCachedumpNotAllowed, output);
        }
        let Cachedump { class, most } = match request {
            Ok(request) => request,
            Err(error) => return refuse(error, output),
        };
        let class = match u8::try_from(class).map(|class| class.checked_sub(1)) {
            // Class 0 is one of memcached's, in which there is never anything.
            Ok(None) => {
                output.bytes().extend_from_slice(reply::END);
                return After::GoOn;
            }
            Ok(Some(class)) if self.has_class(class) => class,
            _ => return refuse(ErrorReply::IllegalSlabId, output),
        };
        let dump = Dump::new(Listing::Class { class, most }, None, &self.shared);
        self.goes_aside(Errand::Dump(Box::new(dump)))
    }

    /// Counts items by their size.
    pub(super) fn sizes(&mut self, output: &mut Output) -> After {
        if !self.shared.settings.track_sizes {
            reply::stat(output.bytes(), "sizes_status", "disabled");
            output.bytes().extend_from_slice(reply::END);
            return After::GoOn;
        }
        self.goes_aside(Errand::Dump(Box::new(Dump::new(Listing::Sizes, None, &self.shared))))
    }
}

impl Executor {
    /// Has items counted by their size for whoever has sent a frame with this header; false if they are not counted.
    pub(crate) fn sizes_in_frames(&mut self, header: Header) -> bool {
        let counts = self.shared.settings.track_sizes;
        if counts {
            self.goes_aside(Errand::Dump(Box::new(Dump::sizes_in_frames(header, &self.shared))));
        }
        counts
    }
}

fn refuse(error: ErrorReply, output: &mut Output) -> After {
    output.bytes().extend_from_slice(error.bytes());
    After::GoOn
}
