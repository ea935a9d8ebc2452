//! The offsets of a time zone. The host is asked for them, once for each stretch of time, and they are kept. Each
//! process has its own.

use crate::room::RoomyVec;

/// An offset and the seconds since 1970 for which it holds: from the start to before the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The first second.
    pub start: i64,
    /// The second after the last.
    pub end: i64,
    /// Seconds east of Greenwich.
    pub offset: i32,
}

/// Seconds of the stretches that a span is kept for, as a power of two: about 48 days.
const STRETCH: u32 = 22;
/// Stretches that are kept: more than thirty years.
const KEPT: usize = 256;

/// A time zone.
pub struct Zone {
    /// Returns the span of a zone of the host around a second, or a part of it that holds the second.
    ask: fn(usize, i64) -> Span,
    /// What the host knows the zone by.
    name: usize,
    spans: Vec<Span>,
}

impl Zone {
    /// The zone that the host knows by this name, of which `ask` knows the span that holds a second since 1970.
    pub fn new(ask: fn(usize, i64) -> Span, name: usize) -> Self {
        Self { ask, name, spans: Vec::new() }
    }

    /// Seconds east of Greenwich at this second since 1970.
    #[inline]
    pub fn offset(&mut self, second: i64) -> i32 {
        let index = (second >> STRETCH) as usize % KEPT;
        match self.spans.get(index) {
            Some(span) if span.start <= second && second < span.end => span.offset,
            _ => self.ask(second, index),
        }
    }

    #[cold]
    fn ask(&mut self, second: i64, index: usize) -> i32 {
        let span = (self.ask)(self.name, second);
        if self.spans.is_empty() && self.spans.lengthen(KEPT, Span { start: 0, end: 0, offset: 0 }).is_err() {
            return span.offset;
        }
        self.spans[index] = span;
        span.offset
    }
}

/// Start of the stretch that a second lies in. A search for its span may begin there.
pub fn stretch(second: i64) -> i64 {
    second >> STRETCH << STRETCH
}
