//! A registry whose only line is that of one relation.

use arrow_cache_core::versions::columns::Wish;
use arrow_cache_core::versions::places::LINES;
use arrow_cache_core::versions::tracked::{Line, LineState, Registry};

pub const DATABASE: u32 = 5;
pub const RELATION: u32 = 7;

pub fn wish(column: i16, set: u64) -> Wish {
    Wish { database: DATABASE, relation: RELATION, column, set }
}
fn line_number() -> usize {
    let lines: Box<[Line; LINES]> = lines(LineState::default(), None);
    let registry = Registry::new(&lines);
    let _ = registry.open(&wish(1, 0), 0);
    lines.iter().position(|line| line.read() != LineState::default()).unwrap()
}

fn lines(state: LineState, at: Option<usize>) -> Box<[Line; LINES]> {
    let all: Vec<Line> =
        (0..LINES).map(|n| Line::from(if at == Some(n) { state } else { LineState::default() })).collect();
    all.try_into().unwrap_or_else(|_| unreachable!("as many as there are"))
}

thread_local! {
    static NUMBER: usize = line_number();
    static BLOCK: std::cell::RefCell<Box<[Line; LINES]>> = std::cell::RefCell::new(lines(LineState::default(), None));
}

/// Does something to a registry whose only line says this.
pub fn with<R>(line: &mut LineState, act: impl FnOnce(Registry<'_>) -> R) -> R {
    BLOCK.with_borrow_mut(|block| {
        let number = NUMBER.with(|number| *number);
        block[number] = Line::from(*line);
        let result = act(Registry::new(block));
        *line = block[number].read();
        result
    })
}
