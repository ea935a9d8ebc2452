#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| arrow_cache_core_fuzz::change_token::check(data));
