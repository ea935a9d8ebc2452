//! Traces: which questions are asked when, and when tables are written to. Made from a seed, so that every policy gets
//! the same.

/// One question.
#[derive(Clone, Copy)]
pub struct Question {
    /// When it is asked, in microseconds.
    pub at: i64,
    pub key: u32,
}

/// What computing the answer of a key takes, and what it is made of.
#[derive(Clone, Copy)]
pub struct Answer {
    pub micros: u64,
    pub bytes: u64,
    /// The table that it rests on.
    pub table: u32,
}

#[derive(Clone, Copy)]
pub enum Event {
    Ask(Question),
    /// A table is written to.
    Write(u32),
}

pub struct Trace {
    pub name: &'static str,
    pub events: Vec<Event>,
    pub answers: Vec<Answer>,
}

/// xorshift64*, by Vigna.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Between 0 and 1.
    fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, end: u32) -> u32 {
        (self.next() % u64::from(end)) as u32
    }

    /// A power between two, equally likely in each decade.
    fn between(&mut self, least: f64, most: f64) -> f64 {
        (least.ln() + (most.ln() - least.ln()) * self.part()).exp()
    }
}

/// Ranks by Zipf's law.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(ranks: u32, exponent: f64) -> Self {
        let mut sum = 0.0;
        Self(
            (1..=ranks)
                .map(|rank| {
                    sum += f64::from(rank).powf(-exponent);
                    sum
                })
                .collect(),
        )
    }

    fn draw(&self, random: &mut Random) -> u32 {
        let wanted = random.part() * self.0.last().expect("there are ranks");
        self.0.partition_point(|sum| *sum < wanted) as u32
    }
}

const KEYS: u32 = 10_000;
const QUESTIONS: u32 = 200_000;
/// Mean time between questions, in microseconds.
const PAUSE: u64 = 20_000;

fn varied(random: &mut Random) -> Answer {
    let micros = random.between(1_000.0, 5_000_000.0) as u64;
    Answer { micros, bytes: random.between(1_000.0, 300_000.0) as u64, table: random.below(40) }
}

fn ask(events: &mut Vec<Event>, at: &mut i64, random: &mut Random, key: u32) {
    *at += (random.next() % (2 * PAUSE)) as i64;
    events.push(Event::Ask(Question { at: *at, key }));
}

/// Questions by Zipf's law; a write to some table after each `write_every` of them.
fn zipf(name: &'static str, write_every: Option<u32>, answer: impl Fn(&mut Random) -> Answer) -> Trace {
    let mut random = Random::new(1);
    let ranks = Zipf::new(KEYS, 0.9);
    let answers = (0..KEYS).map(|_| answer(&mut random)).collect();
    let (mut events, mut at) = (Vec::new(), 0);
    for n in 0..QUESTIONS {
        let key = ranks.draw(&mut random);
        ask(&mut events, &mut at, &mut random, key);
        if write_every.is_some_and(|every| n % every == 0) {
            // Some tables are written to much more often than others.
            let table = random.below(40);
            events.push(Event::Write(random.below(table + 1)));
        }
    }
    Trace { name, events, answers }
}

/// Half of the questions are asked once and never again.
fn scans() -> Trace {
    let mut trace = zipf("Zipf, half asked once", None, varied);
    let mut random = Random::new(2);
    let mut events = Vec::new();
    for event in trace.events {
        events.push(event);
        if let Event::Ask(question) = event {
            events.push(Event::Ask(Question { key: trace.answers.len() as u32, ..question }));
            trace.answers.push(varied(&mut random));
        }
    }
    Trace { events, ..trace }
}

/// Twenty large results that are asked for as often as five thousand small ones.
fn large_and_small() -> Trace {
    let mut random = Random::new(3);
    let mut answers: Vec<Answer> = (0..5_000)
        .map(|_| Answer { micros: random.between(2_000.0, 50_000.0) as u64, bytes: 2_000, table: 0 })
        .collect();
    answers.extend((0..20).map(|_| Answer { micros: 1_000_000, bytes: 4 << 20, table: 0 }));
    let ranks = Zipf::new(5_000, 0.7);
    let (mut events, mut at) = (Vec::new(), 0);
    for _ in 0..QUESTIONS {
        let key = if random.below(20) == 0 { 5_000 + random.below(20) } else { ranks.draw(&mut random) };
        ask(&mut events, &mut at, &mut random, key);
    }
    Trace { name: "large and small", events, answers }
}

/// What is popular moves on: a window over the keys, which slides.
fn drift() -> Trace {
    let mut random = Random::new(4);
    let ranks = Zipf::new(2_000, 0.8);
    let answers = (0..30_000).map(|_| varied(&mut random)).collect();
    let (mut events, mut at) = (Vec::new(), 0);
    for n in 0..QUESTIONS {
        let key = (ranks.draw(&mut random) + n / 8) % 30_000;
        ask(&mut events, &mut at, &mut random, key);
    }
    Trace { name: "popularity that moves on", events, answers }
}

/// Boards of ten panels, each refreshed every half minute for a while, as long as somebody looks at it; tables are
/// written to all the time.
fn boards() -> Trace {
    let mut random = Random::new(5);
    let boards = 400;
    let answers: Vec<Answer> = (0..boards * 10).map(|_| varied(&mut random)).collect();
    let ranks = Zipf::new(boards, 0.8);
    let mut events: Vec<(i64, Event)> = Vec::new();
    let end = 4_000_000_000i64;
    let mut visit = 0;
    while visit < end {
        visit += (random.next() % 8_000_000) as i64;
        let board = ranks.draw(&mut random);
        let leaves = visit + random.between(20e6, 1200e6) as i64;
        let mut at = visit;
        while at < leaves.min(end) {
            events.extend((0..10).map(|panel| (at, Event::Ask(Question { at, key: board * 10 + panel }))));
            at += 30_000_000;
        }
    }
    events.extend((0..end / 5_000_000).map(|n| {
        let table = random.below(40);
        (n * 5_000_000, Event::Write(random.below(table + 1)))
    }));
    events.sort_by_key(|(at, _)| *at);
    Trace {
        name: "boards on walls, written tables",
        events: events.into_iter().map(|(_, event)| event).collect(),
        answers,
    }
}

pub fn all() -> Vec<Trace> {
    let alike = |_: &mut Random| Answer { micros: 20_000, bytes: 16_000, table: 0 };
    vec![
        zipf("Zipf, all alike", None, alike),
        zipf("Zipf", None, varied),
        zipf("Zipf, written tables", Some(20), varied),
        scans(),
        large_and_small(),
        drift(),
        boards(),
    ]
}
