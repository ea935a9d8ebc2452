//! The offsets of a time zone. The host is asked for them, once for each stretch of time, and they are kept. Each process has its own.

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
    /// Returns the span around a second, or a part of it that holds the second.
    ask: fn(i64) -> Span,
    spans: Vec<Span>,
}

impl Zone {
    /// A zone of which `ask` knows the span that holds a second since 1970.
    pub fn new(ask: fn(i64) -> Span) -> Self {
        Self { ask, spans: Vec::new() }
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
        if self.spans.is_empty() {
            self.spans = vec![Span { start: 0, end: 0, offset: 0 }; KEPT];
        }
        let span = (self.ask)(second);
        self.spans[index] = span;
        span.offset
    }
}

/// Start of the stretch that a second lies in. A search for its span may begin there.
pub fn stretch(second: i64) -> i64 {
    second >> STRETCH << STRETCH
}
