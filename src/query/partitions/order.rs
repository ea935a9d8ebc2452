//! The order of a partition key, and where a constant stands among the sorted values that bound partitions.

use std::cmp::Ordering;

use pgrx::pg_sys;

use crate::pg::compat::PartitionColumn;

/// The order of a partition key. Good as long as the relation is open.
pub struct Order {
    support: *mut pg_sys::FmgrInfo,
    collation: pg_sys::Oid,
    input_type: pg_sys::Oid,
}

impl Order {
    /// The order of a key of an open relation.
    pub fn of(key: &PartitionColumn) -> Self {
        Self { support: key.support, collation: key.collation, input_type: key.input_type }
    }

    /// The function that compares.
    pub fn function(&self) -> pg_sys::Oid {
        // SAFETY: the relation is open, so that its key is there.
        unsafe { (*self.support).fn_oid }
    }

    /// Compares two values of the key's type.
    pub fn compare(&self, one: pg_sys::Datum, other: pg_sys::Datum) -> Ordering {
        // SAFETY: the key's own function, with values of its type.
        let result = unsafe { kept!(pg_sys::FunctionCall2Coll(self.support, self.collation, one, other)) };
        (result.value() as i32).cmp(&0)
    }

    /// Compares the greatest value below `end` with another value. `None` if the type has no such value, or none is known here.
    pub fn compare_last_before(&self, end: pg_sys::Datum, other: pg_sys::Datum) -> Option<Ordering> {
        Some(self.whole(end)?.checked_sub(1)?.cmp(&self.whole(other)?))
    }

    /// A value as a whole number in whose order the values stand, infinite ones included; `None` for types without one. Whole numbers next
    /// to each other stand for values without another one between them.
    fn whole(&self, value: pg_sys::Datum) -> Option<i64> {
        match self.input_type {
            pg_sys::INT2OID => Some(i64::from(value.value() as i16)),
            pg_sys::INT4OID | pg_sys::DATEOID => Some(i64::from(value.value() as i32)),
            pg_sys::INT8OID | pg_sys::TIMESTAMPOID | pg_sys::TIMESTAMPTZOID => Some(value.value() as i64),
            _ => None,
        }
    }
}

/// Where a constant stands among sorted values.
pub struct Place {
    /// So many values are less than the constant.
    less: usize,
    /// So many are less, or equal.
    not_greater: usize,
}

impl Place {
    /// Searches `count` sorted values. `compare` compares the value with a number with the constant.
    pub fn search(count: usize, compare: impl Fn(usize) -> Ordering) -> Self {
        let less = first_that_is_not(0, count, |number| compare(number).is_lt());
        Self { less, not_greater: first_that_is_not(less, count, |number| compare(number).is_le()) }
    }

    /// How many values are less than the constant.
    pub fn less(&self) -> usize {
        self.less
    }

    /// How many values are less than the constant, or equal.
    pub fn not_greater(&self) -> usize {
        self.not_greater
    }

    /// How the value with this number compares with the constant.
    pub fn of(&self, number: usize) -> Ordering {
        if number < self.less {
            Ordering::Less
        } else if number < self.not_greater {
            Ordering::Equal
        } else {
            Ordering::Greater
        }
    }
}

/// The first number from `from` on, and before `end`, that is not as asked, where all before it are; else `end`.
fn first_that_is_not(from: usize, end: usize, is_so: impl Fn(usize) -> bool) -> usize {
    let (mut from, mut end) = (from, end);
    while from < end {
        let middle = from + (end - from) / 2;
        if is_so(middle) {
            from = middle + 1;
        } else {
            end = middle;
        }
    }
    from
}
