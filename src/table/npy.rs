//! The header of a NumPy file.

use crate::theory::nimber::index;

/// Length of the header of either file, in bytes.
pub const HEADER: u64 = 4096;

/// Returns the header of a one-dimensional NumPy file, `size` bytes long: magic, version 1.0, length of the rest,
/// dictionary, spaces, newline.
///
/// `descr` is the type as NumPy writes it, a list or a quoted string; `length` is the number of elements; `size` is a
/// multiple of 64.
///
/// # Panics
/// If the dictionary does not fit `size` bytes, or if `size` exceeds 65545.
#[must_use]
pub fn npy_header(descr: &str, length: u64, size: u64) -> Vec<u8> {
    let dictionary = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': ({length},), }}");
    let rest = u16::try_from(size - 10).expect("a header of less than 64 KiB");
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend(rest.to_le_bytes());
    header.extend(dictionary.as_bytes());
    assert!((header.len() as u64) < size, "the dictionary fits the header");
    header.resize(index(size) - 1, b' ');
    header.push(b'\n');
    header
}

/// Returns the shape in a header that is, byte for byte, [`npy_header`] of that shape; `None` for any other header.
pub(super) fn shape_of(descr: &str, header: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(header);
    let (_, shape_on) = text.split_once("'shape': (")?;
    let (digits, _) = shape_on.split_once(',')?;
    let shape = digits.parse().ok()?;
    (npy_header(descr, shape, header.len() as u64) == header).then_some(shape)
}

/// Returns the offset of the first byte in which a header that [`shape_of`] refuses differs from every header, or
/// that of the shape, if the shape alone is wrong.
pub(super) fn first_difference(descr: &str, header: &[u8]) -> usize {
    first_wrong_byte(descr, header).unwrap_or_else(|| start_of_shape(descr, header.len() as u64))
}

fn start_of_shape(descr: &str, size: u64) -> usize {
    let [least, most] = [0, u64::MAX].map(|shape| npy_header(descr, shape, size));
    least.iter().zip(&most).position(|(a, b)| a != b).unwrap_or(0)
}

/// Returns the offset of the first byte of a header that no shape explains. A byte in the place of the shape may be any
/// that a shape can have there, because a power cut can leave a mixture of two shapes.
pub(super) fn first_wrong_byte(descr: &str, header: &[u8]) -> Option<usize> {
    let size = header.len() as u64;
    let least = npy_header(descr, 0, size);
    let most = npy_header(descr, u64::MAX, size);
    let from = start_of_shape(descr, size);
    let to = most.iter().rposition(|&byte| byte == b'}').unwrap_or(0);
    let may_be = |i: usize| (from..=to).contains(&i) && b"0123456789,) }".contains(&header[i]);
    (0..header.len()).find(|&i| header[i] != least[i] && !may_be(i))
}
