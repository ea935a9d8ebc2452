//! A result as messages of an Arrow IPC stream, shaped by the options of the export. Whole batches that go out as they are
//! stored are passed on untouched; all others are made anew, one batch at a time.

use arrow_array::RecordBatch;
use arrow_cache_core::{Compression, ExportOptions, Reason};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions, StreamEncoder, write_message};
use arrow_schema::{ArrowError, Schema};
use pgrx::pg_sys;

use crate::arrow::chunk::Chunk;
use crate::arrow::column::Column;
use crate::arrow::deliver::Delivery;
use crate::error::CacheError;

/// Takes the messages of a stream, each as the parts that make it up.
pub trait Output {
    /// About so many bytes will come.
    fn expect(&mut self, _bytes: usize) {}
    /// The schema, which comes first.
    fn schema(&mut self, message: &[u8]);
    /// A batch with so many rows.
    fn batch(&mut self, rows: usize, parts: &[&[u8]]);
    /// All has been sent.
    fn end(&mut self) {}
    /// Should more be made at once? If not, the export pauses after the batch.
    fn wants_more(&self) -> bool {
        true
    }
}

/// Makes the messages of one result.
pub struct Stream {
    delivery: Delivery,
    /// Rows that may still be delivered.
    left: u64,
    /// Rows that have been delivered.
    delivered: u64,
    batch_rows: usize,
    /// Do whole batches go out as they are stored?
    verbatim: bool,
    /// Makes the messages of the others. It has made its schema message already.
    encoder: StreamEncoder,
}

impl Stream {
    /// Prepares the delivery of rows of this type.
    ///
    /// Raises what the user can mend: a column that is not there, a type that the options cannot deliver.
    ///
    /// # Safety
    /// `descriptor` must be the row type whose columns these are.
    pub unsafe fn new(descriptor: pg_sys::TupleDesc, columns: &[Column], options: &ExportOptions) -> Self {
        // SAFETY: as the caller promises.
        let delivery = unsafe { Delivery::new(descriptor, columns, options) }.unwrap_or_else(|error| error.raise());
        let encoder = encoder(&delivery, options.compression).unwrap_or_else(|_| refused());
        Self {
            left: options.limit.unwrap_or(u64::MAX),
            delivered: 0,
            batch_rows: options.batch_rows.unwrap_or(usize::MAX),
            verbatim: delivery.is_verbatim() && options.compression == Compression::None,
            encoder,
            delivery,
        }
    }

    /// The schema message.
    pub fn schema(&self) -> Vec<u8> {
        schema_message(&self.delivery.schema()).unwrap_or_else(|_| refused())
    }

    /// Columns that are delivered.
    pub fn columns(&self) -> usize {
        self.delivery.schema().fields().len()
    }

    /// Rows that have been delivered.
    pub fn rows(&self) -> u64 {
        self.delivered
    }

    /// Rows that may still be delivered: as good as no limit if none was asked for.
    pub fn rows_left(&self) -> u64 {
        self.left
    }

    /// Delivers a stored batch, or as much of it as may be delivered. Raises on a value that cannot be.
    ///
    /// # Safety
    /// The chunk must have the columns of the stream.
    pub unsafe fn batch(&mut self, chunk: Chunk<'_>, output: &mut impl Output) {
        let rows = usize::try_from(self.left).unwrap_or(usize::MAX).min(chunk.rows());
        if rows == 0 {
            return;
        }
        let before = self.delivered;
        self.delivered += rows as u64;
        self.left -= rows as u64;
        // SAFETY: as the caller promises.
        unsafe { self.delivery.check(chunk, rows, before) }.unwrap_or_else(|error| error.raise());
        if self.verbatim && rows == chunk.rows() && rows <= self.batch_rows {
            return output.batch(rows, &[chunk.message()]);
        }
        // SAFETY: as the caller promises.
        let batch = unsafe { self.delivery.batch(chunk, rows, before) }.unwrap_or_else(|error| error.raise());
        let mut start = 0;
        while start < rows {
            let length = self.batch_rows.min(rows - start);
            let message = self.encoder.encode(&batch.slice(start, length)).unwrap_or_else(|_| refused());
            let parts: Vec<&[u8]> = message.iter().map(|part| part.as_slice()).collect();
            output.batch(length, &parts);
            start += length;
        }
    }
}

/// An encoder for the batches of a delivery that has its schema behind it.
fn encoder(delivery: &Delivery, compression: Compression) -> Result<StreamEncoder, ArrowError> {
    let compression = match compression {
        Compression::None => None,
        Compression::Lz4 => Some(CompressionType::LZ4_FRAME),
        Compression::Zstd => Some(CompressionType::ZSTD),
    };
    let schema = delivery.schema();
    let options = IpcWriteOptions::default().try_with_compression(compression)?;
    let mut encoder = StreamEncoder::try_new_with_options(&schema, options)?;
    // The first batch brings the schema with it; ours is sent whether there is a batch or not.
    encoder.encode(&RecordBatch::new_empty(schema))?;
    Ok(encoder)
}

fn schema_message(schema: &Schema) -> Result<Vec<u8>, ArrowError> {
    let options = IpcWriteOptions::default();
    let mut dictionaries = DictionaryTracker::new(false);
    let encoded =
        IpcDataGenerator::default().schema_to_bytes_with_dictionary_tracker(schema, &mut dictionaries, &options);
    let mut message = Vec::new();
    write_message(&mut message, encoded, &options)?;
    Ok(message)
}

/// Arrow's writer refuses what this crate has made: no value or option does that.
fn refused() -> ! {
    CacheError::Undeliverable { reason: Reason::UnsupportedType }.raise()
}
