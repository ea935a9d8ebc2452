//! What keeping an entry is worth: the time that it is likely to save, for its bytes. Pure arithmetic with integers;
//! nothing is kept here.
//!
//! How often an entry will be used is estimated as hyperbolic caching does (Blankstein, Sen, Freedman: "Hyperbolic
//! Caching: Flexible Caching for Web Applications", USENIX ATC 2017): by its uses over the time in which they were
//! counted. An entry whose uses have stopped is told by how long it has not been used.

/// A worth, or a part of one: the logarithm to base 2, in steps of 1/256. Products become sums, and no figure
/// overflows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Worth(i32);

/// One bit of the logarithm: a factor of two.
const BIT: i32 = 256;
/// Added to the time in which uses were counted, in microseconds, so that what has just come is not thought to be used
/// all the time.
const LEAST_TIME: u64 = 1 << 23;
/// Added to the time since the last use, in microseconds.
const LEAST_IDLE: u64 = 1 << 10;
/// After so many times its usual interval without a use, an entry is thought to be used less than it was.
const PATIENCE: u64 = 2;
/// What a new result may be worth less than those that it displaces, as a factor: estimates are coarse.
const MARGIN: i32 = BIT;

/// How an entry was used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Uses {
    /// How often.
    pub hits: u64,
    /// In how many microseconds.
    pub span: u64,
    /// Microseconds since the last use.
    pub idle: u64,
}

impl Uses {
    /// Of something that nothing is known of.
    pub(crate) const NONE: Self = Self { hits: 0, span: 0, idle: 0 };
}

impl Worth {
    /// Of an entry of so many bytes whose answer takes so many microseconds to compute.
    pub(crate) fn of(micros: u64, bytes: u64, uses: Uses) -> Self {
        let usual = logarithm(uses.hits.saturating_add(1)) - logarithm(uses.span.saturating_add(LEAST_TIME));
        let lately = logarithm(PATIENCE) - logarithm(uses.idle.saturating_add(LEAST_IDLE));
        Self(logarithm(micros.saturating_add(1)) - logarithm(bytes.saturating_add(1)) + usual.min(lately))
    }

    /// Milliseconds that are saved per second, for each megabyte.
    pub(crate) fn as_score(self) -> f64 {
        (f64::from(self.0) / f64::from(BIT)).exp2() * 1000.0 * 1_048_576.0
    }

    /// Returns true if this is so little beside `other` that `other` stays.
    pub(crate) fn is_outweighed_by(self, other: Self) -> bool {
        self.0 + MARGIN < other.0
    }
}

/// The logarithm to base 2 of a number, in steps of 1/256, between powers of two as if it were linear; 0 for 0. Wrong
/// by less than a tenth of a bit.
fn logarithm(number: u64) -> i32 {
    let number = number.max(1);
    let whole = number.ilog2();
    let rest = if whole >= 8 { number >> (whole - 8) } else { number << (8 - whole) };
    whole as i32 * BIT + (rest as i32 & (BIT - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000;

    #[test]
    fn more_saved_for_fewer_bytes_is_worth_more() {
        let used = Uses { hits: 10, span: 100 * SECOND, idle: SECOND };
        let plain = Worth::of(5000, 4096, used);
        assert!(Worth::of(10_000, 4096, used) > plain && Worth::of(5000, 2048, used) > plain);
        assert!(Worth::of(5000, 4096, Uses { hits: 20, ..used }) > plain);
        assert!(Worth::of(5000, 4096, Uses { span: 200 * SECOND, ..used }) < plain);
    }

    #[test]
    fn what_is_not_used_any_more_loses_its_worth() {
        let used = Uses { hits: 1000, span: 1000 * SECOND, idle: SECOND };
        let worth = |idle| Worth::of(5000, 4096, Uses { idle, ..used });
        assert_eq!(worth(0), worth(SECOND), "a pause is nothing special");
        assert!(worth(100 * SECOND) < worth(10 * SECOND) && worth(10 * SECOND) < worth(SECOND));
        let quiet = Worth::of(5000, 4096, Uses { hits: 1, span: 100 * SECOND, idle: 90 * SECOND });
        assert!(worth(990 * SECOND) < quiet);
    }

    #[test]
    fn the_score_is_in_milliseconds_per_second_and_megabyte() {
        // One use of 16 ms each 10 s, in 64 kilobytes.
        let used = Uses { hits: 1_000_000, span: 10_000_000 * SECOND, idle: SECOND };
        let score = Worth::of(16_000, 65_536, used).as_score();
        assert!((score - 16.0 / 10.0 * 16.0).abs() < 2.0, "{score}");
    }

    #[test]
    fn a_little_less_is_no_reason_to_refuse() {
        let of = |micros| Worth::of(micros, 4096, Uses::NONE);
        assert!(!of(600).is_outweighed_by(of(1000)) && of(200).is_outweighed_by(of(1000)));
        assert!(!of(1000).is_outweighed_by(of(1000)) && !of(1000).is_outweighed_by(of(10)));
    }

    proptest! {
        #[test]
        fn the_logarithm_is_close(number in 1..u64::MAX) {
            let exact = (number as f64).log2() * f64::from(BIT);
            prop_assert!((f64::from(logarithm(number)) - exact).abs() < 25.0);
        }

        #[test]
        fn the_logarithm_never_falls(number in 0..u64::MAX) {
            prop_assert!(logarithm(number) <= logarithm(number + 1));
        }

        #[test]
        fn nothing_overflows(micros: u64, bytes: u64, hits: u64, span: u64, idle: u64) {
            let Worth(worth) = Worth::of(micros, bytes, Uses { hits, span, idle });
            prop_assert!(worth.abs() < 1 << 20);
        }
    }
}
