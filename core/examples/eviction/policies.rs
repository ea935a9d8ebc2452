//! What the store is compared with: models without an overhead, which evict exactly, and a bound that no policy can
//! pass.

use crate::traces::{Event, Trace};
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

/// A number by which answers are put in order.
#[derive(Clone, Copy, PartialEq)]
struct Priority(f64);

impl Eq for Priority {}

impl PartialOrd for Priority {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Priority {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// What a model evicts by.
#[derive(Clone, Copy, PartialEq)]
pub enum Model {
    /// The least recently used one goes.
    Lru,
    /// Greedy-Dual-Size-Frequency (Cherkasova, HP Labs 1998).
    Gdsf,
}

struct Held {
    priority: Priority,
    version: u64,
    uses: f64,
}

/// Milliseconds that a cache of so many bytes would have saved.
pub fn saved_by_model(trace: &Trace, capacity: u64, model: Model) -> f64 {
    let mut held: HashMap<u32, Held> = HashMap::new();
    let mut order: BTreeSet<(Priority, u32)> = BTreeSet::new();
    let mut versions: HashMap<u32, u64> = HashMap::new();
    let (mut bytes, mut inflation, mut saved) = (0, 0.0, 0.0);
    for (n, event) in trace.events.iter().enumerate() {
        let question = match event {
            Event::Write(table) => {
                *versions.entry(*table).or_default() += 1;
                continue;
            }
            Event::Ask(question) => question,
        };
        let answer = trace.answers[question.key as usize];
        let version = versions.get(&answer.table).copied().unwrap_or(0);
        let mut uses = 1.0;
        if let Some(old) = held.remove(&question.key) {
            order.remove(&(old.priority, question.key));
            bytes -= answer.bytes;
            uses = old.uses + 1.0;
            if old.version == version {
                saved += answer.micros as f64 / 1000.0;
            }
        }
        let priority = Priority(match model {
            Model::Lru => n as f64,
            Model::Gdsf => inflation + uses * answer.micros as f64 / answer.bytes as f64,
        });
        if answer.bytes > capacity {
            continue;
        }
        while bytes + answer.bytes > capacity {
            let (Priority(least), key) = order.pop_first().expect("bytes are held");
            inflation = least;
            held.remove(&key);
            bytes -= trace.answers[key as usize].bytes;
        }
        bytes += answer.bytes;
        order.insert((priority, question.key));
        held.insert(question.key, Held { priority, version, uses });
    }
    saved
}

/// Milliseconds that no cache of so many bytes can pass: each time an answer is asked for again, unchanged, it costs
/// its bytes for the time between. The cheapest of these are taken until bytes and time are used up, the last one in
/// part.
pub fn bound(trace: &Trace, capacity: u64) -> f64 {
    let mut last: HashMap<u32, (i64, u64)> = HashMap::new();
    let mut versions: HashMap<u32, u64> = HashMap::new();
    let mut chances: Vec<(f64, f64)> = Vec::new();
    let mut end = 0;
    for event in &trace.events {
        match event {
            Event::Write(table) => *versions.entry(*table).or_default() += 1,
            Event::Ask(question) => {
                end = question.at;
                let answer = trace.answers[question.key as usize];
                let version = versions.get(&answer.table).copied().unwrap_or(0);
                if let Some((at, of)) = last.insert(question.key, (question.at, version))
                    && of == version
                {
                    chances.push((answer.micros as f64 / 1000.0, answer.bytes as f64 * (question.at - at) as f64));
                }
            }
        }
    }
    chances.sort_by(|(saved, room), (other_saved, other_room)| {
        (saved * other_room).total_cmp(&(other_saved * room)).reverse()
    });
    let mut left = capacity as f64 * end as f64;
    let mut sum = 0.0;
    for (saved, room) in chances {
        if room >= left {
            sum += saved * left / room;
            break;
        }
        left -= room;
        sum += saved;
    }
    sum
}

/// Milliseconds that all questions take without a cache.
pub fn all(trace: &Trace) -> f64 {
    let micros = trace.events.iter().map(|event| match event {
        Event::Ask(question) => trace.answers[question.key as usize].micros,
        Event::Write(_) => 0,
    });
    micros.sum::<u64>() as f64 / 1000.0
}
