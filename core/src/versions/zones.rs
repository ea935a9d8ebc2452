//! Zones: the blocks of a table in ranges of equal size, a power of two. The zone of a row's version is content as a
//! value of a column is: a tracked relation may have zones of some sizes among its columns, and a change of a row
//! concerns the zones where its old and its new version lie. A version never moves to another block, unless the table
//! is rewritten, which is a change of its definition.

use crate::versions::columns::{ColumnValue, TrackedColumns};

/// The number of the column that stands for zones of one block. No table has that many columns.
const FIRST: i16 = 0x7f00;
/// The largest zones have so many blocks, by its binary logarithm.
pub const LARGEST: u32 = 20;

/// The column that stands for zones of so many blocks, by its binary logarithm, `LARGEST` at most.
#[must_use]
pub const fn zones_of(size: u32) -> i16 {
    FIRST + if size < LARGEST { size } else { LARGEST } as i16
}

/// How many blocks the zones have for which a column stands, by its binary logarithm; `None` if it stands for others.
#[must_use]
pub const fn size_of_zones(column: i16) -> Option<u32> {
    if column >= FIRST && column <= zones_of(LARGEST) { Some((column - FIRST) as u32) } else { None }
}

/// The zones in which a block lies, as values of those of a relation's columns that stand for zones.
pub fn zones_at(columns: &TrackedColumns, block: u32) -> impl Iterator<Item = ColumnValue> + use<> {
    columns.iter().filter_map(move |column| Some((column, u64::from(block >> size_of_zones(column)?))))
}

/// How many blocks a zone of a table with so many blocks should have, by its binary logarithm: there are `most` at
/// most, and more than half of that, unless they would be smaller than `least`.
#[must_use]
pub fn size_for(blocks: u32, most: u32, least: u32) -> u32 {
    u64::from(blocks.div_ceil(most.max(1)).max(1)).next_power_of_two().ilog2().clamp(least, LARGEST)
}

/// Zones of one table that follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Zones {
    /// The column that stands for zones of their size.
    pub column: i16,
    /// The number of the first one.
    pub first: u64,
    /// How many there are.
    pub count: u64,
}

impl Zones {
    /// None of any table.
    pub const NONE: Self = Self { column: 0, first: 0, count: 0 };

    /// All zones of a table with so many blocks.
    #[must_use]
    pub fn of_table(column: i16, blocks: u32) -> Self {
        Self { column, first: 0, count: size_of_zones(column).map_or(0, |size| u64::from(blocks).div_ceil(1 << size)) }
    }

    /// Their numbers.
    #[must_use]
    pub const fn numbers(self) -> std::ops::Range<u64> {
        self.first..self.first + self.count
    }

    /// The blocks that they consist of.
    #[must_use]
    pub fn blocks(self) -> std::ops::Range<u32> {
        let size = size_of_zones(self.column).unwrap_or(0);
        let block = |zone: u64| u32::try_from(zone << size).unwrap_or(u32::MAX);
        block(self.first)..block(self.first + self.count)
    }

    /// These zones in groups of so many. The last one may have fewer.
    pub fn groups_of(self, most: u64) -> impl Iterator<Item = Self> {
        let end = self.first + self.count;
        let group = move |first: u64| Self { first, count: most.min(end - first), ..self };
        (self.first..end).step_by(most.max(1) as usize).map(group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versions::columns::EACH_ROW;

    #[test]
    fn columns_of_zones_are_none_of_a_table() {
        for size in 0..=LARGEST {
            assert_eq!(size_of_zones(zones_of(size)), Some(size));
            assert!(zones_of(size) > 1600 && zones_of(size) != EACH_ROW);
        }
        for column in [0, 1, 1600, FIRST - 1, zones_of(LARGEST) + 1, EACH_ROW] {
            assert_eq!(size_of_zones(column), None);
        }
    }

    #[test]
    fn zones_cover_the_table() {
        let all = Zones::of_table(zones_of(5), 32 * 70 + 1);
        assert_eq!((all.numbers(), all.blocks()), (0..71, 0..32 * 71));
        let groups: Vec<_> = all.groups_of(32).collect();
        assert_eq!(groups.iter().map(|group| group.count).collect::<Vec<_>>(), [32, 32, 7]);
        assert_eq!(groups.iter().flat_map(|group| group.numbers()).collect::<Vec<_>>(), (0..71).collect::<Vec<_>>());
        assert_eq!(groups[2].blocks(), 64 * 32..71 * 32);
        assert_eq!(groups[1].groups_of(1).count(), 32);
        assert_eq!(Zones::of_table(zones_of(0), 0).groups_of(4).count(), 0);
        let last = Zones { column: zones_of(20), first: 4095, count: 1 };
        assert_eq!(last.blocks(), 4095 << 20..u32::MAX);
    }

    #[test]
    fn sizes_follow_the_table() {
        assert_eq!([0, 1, 1024, 1025, 2048, 2049].map(|blocks| size_for(blocks, 1024, 0)), [0, 0, 0, 1, 1, 2]);
        assert_eq!(size_for(1024, 1024, 5), 5);
        assert_eq!(size_for(u32::MAX, 1, 0), LARGEST);
        for blocks in [33_000, 640_000, 5_000_001] {
            let zones = blocks >> size_for(blocks, 1024, 5);
            assert!((512..=1024).contains(&zones), "{zones}");
        }
    }
}
