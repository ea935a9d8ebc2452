//! What storing the rows of a run takes, and whether that pays before the same is asked again. Pure; nothing is kept
//! here.

/// Storing may take one part in so many of the time of a first run.
const LEAST_RUN: u64 = 20;
/// What turning a value into a column takes, in nanoseconds. This and the next one are those of a usual machine: a
/// guess is enough, since the runs that it divides differ by much more.
const NANOS_PER_VALUE: u64 = 15;
/// How many bytes are written in a nanosecond.
const BYTES_PER_NANO: u64 = 4;

/// What storing so many values, in so many bytes, takes in nanoseconds.
#[must_use]
pub fn storing_nanos(values: u64, bytes: u64) -> u64 {
    values.saturating_mul(NANOS_PER_VALUE).saturating_add(bytes / BYTES_PER_NANO)
}

/// Returns true if it pays to store at once what takes `storing` nanoseconds to store, of the `elapsed` ones of its
/// run.
#[must_use]
pub fn pays_at_once(storing: u64, elapsed: u64) -> bool {
    storing.saturating_mul(LEAST_RUN) <= elapsed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_computes_pays_and_one_that_only_reads_does_not() {
        let storing = storing_nanos(640 * 8, 640 * 100);
        assert_eq!(storing, 640 * (8 * 15 + 25));
        assert!(!pays_at_once(storing, storing * 4), "a plain scan");
        assert!(!pays_at_once(storing, storing * LEAST_RUN - 1));
        assert!(pays_at_once(storing, storing * LEAST_RUN));
        assert!(pays_at_once(0, 0));
        assert!(!pays_at_once(storing_nanos(u64::MAX, u64::MAX), u64::MAX - 1));
    }
}
