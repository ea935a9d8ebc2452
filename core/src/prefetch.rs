//! A hint to the processor. Pure function.

/// Asks the processor to fetch a cache line that will be needed soon. Any address will do: the hint reads nothing and
/// cannot fault.
#[inline]
pub(crate) fn prefetch(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a hint to the processor; every x86-64 one knows it.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}
