//! What a snapshot sees, in 64-bit ids of transactions. Pure: nothing here is shared.

use crate::versions::xid_window::XidWindow;

/// What a snapshot sees, in 64-bit transaction ids.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotView<'a> {
    /// Every id below has ended.
    pub xmin: u64,
    /// Every id from here on had not begun.
    pub xmax: u64,
    /// Low halves of the top-level ids in `xmin..xmax` that were running, in any order.
    pub in_progress: &'a [u32],
}

impl<'a> SnapshotView<'a> {
    /// A snapshot with 32-bit ids. `next_full_xid` is the next id at any time less than 2^31 transactions away from the
    /// snapshot.
    #[must_use]
    pub fn new(next_full_xid: u64, xmin32: u32, xmax32: u32, xip: &'a [u32]) -> Self {
        Self { xmin: widen_xid(next_full_xid, xmin32), xmax: widen_xid(next_full_xid, xmax32), in_progress: xip }
    }

    /// Whether the transaction had ended when the snapshot was taken, so that the snapshot sees it if it committed.
    #[must_use]
    pub fn finished(&self, xid: u64) -> bool {
        xid < self.xmin || (xid < self.xmax && !self.in_progress.contains(&(xid as u32)))
    }

    /// Whether all of them had ended.
    pub(crate) fn all_finished(&self, window: &XidWindow) -> bool {
        let widened = |xid: u32| self.xmin + u64::from(xid.wrapping_sub(self.xmin as u32));
        window.is_empty()
            || window.high < self.xmin
            || (window.high < self.xmax && !self.in_progress.iter().any(|&xid| window.holds(widened(xid))))
    }
}

/// The 64-bit id nearest to `reference` whose low half is `xid`; 0 if that would be negative. References are below
/// 2^63.
#[must_use]
pub fn widen_xid(reference: u64, xid: u32) -> u64 {
    let distance = xid.wrapping_sub(reference as u32).cast_signed();
    reference.cast_signed().wrapping_add(distance.into()).max(0).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::widen_xid;

    #[test]
    fn the_nearest_id_is_taken() {
        let cycle = 1 << 32;
        assert_eq!(widen_xid(1000, 999), 999);
        assert_eq!(widen_xid(1000, 1001), 1001);
        assert_eq!(widen_xid(5 * cycle + 2, u32::MAX), 5 * cycle - 1);
        assert_eq!(widen_xid(5 * cycle - 1, 2), 5 * cycle + 2);
        assert_eq!(widen_xid(5 * cycle, i32::MAX.cast_unsigned()), 5 * cycle + (cycle / 2 - 1));
        assert_eq!(widen_xid(5 * cycle, i32::MIN.cast_unsigned()), 5 * cycle - cycle / 2);
        assert_eq!(widen_xid(2, u32::MAX), 0, "there is none before the first");
        assert_eq!(widen_xid(i64::MAX as u64 - 1, u32::MAX), i64::MAX as u64);
    }
}
