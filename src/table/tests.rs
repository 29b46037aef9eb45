//! The table files as NumPy reads them.

use super::*;
use crate::storage::Dir;

/// The description and the data of an array file, by the definition of NumPy's format 1.0.
fn array(bytes: &[u8]) -> (String, &[u8]) {
    assert_eq!(bytes[..8], *b"\x93NUMPY\x01\x00");
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let description = std::str::from_utf8(&bytes[10..start]).unwrap();
    assert!(start.is_multiple_of(64) && description.ends_with('\n'), "{description:?}");
    (description.trim_end().to_owned(), &bytes[start..])
}

/// The description of a one-dimensional array.
fn description(element: &str, length: usize) -> String {
    format!("{{'descr': {element}, 'fortran_order': False, 'shape': ({length},), }}")
}

/// What numpy's memory maps rely on: a whole array at any time, of exactly the committed length.
#[test]
fn the_tables_are_npy_files_of_the_committed_length_at_every_moment() {
    let values: Vec<u16> = (0..3000u16).map(|n| n.wrapping_mul(77) % 400).collect();
    for (width, element) in [(Width::U8, "'|u1'"), (Width::U16, "'<u2'")] {
        let dir = tempfile::tempdir().unwrap();
        let holds = |count: usize| {
            let bytes = std::fs::read(dir.path().join("values.npy")).unwrap();
            let (described, data) = array(&bytes);
            assert_eq!(described, description(element, count));
            let expected: Vec<u8> = match width {
                Width::U8 => values[..count].iter().map(|&v| v.min(255).to_le_bytes()[0]).collect(),
                Width::U16 => values[..count].iter().flat_map(|v| v.to_le_bytes()).collect(),
            };
            assert!(data.starts_with(&expected), "{width:?}, {count} values");
        };
        let mut table = Table::create(&Dir::at(dir.path()), width).unwrap();
        holds(0);
        let mut committed = 0;
        for piece in values.chunks(700) {
            table.write(piece).unwrap();
            table.sync().unwrap();
            // What is only written is not in the shape.
            holds(committed);
            table.publish().unwrap();
            committed += piece.len();
            holds(committed);
            if width == Width::U8 {
                let bytes = std::fs::read(dir.path().join("escapes.npy")).unwrap();
                let large = values[..committed].iter().filter(|&&v| v >= 255).count();
                let (described, _) = array(&bytes);
                assert_eq!(described, description("[('n', '<u8'), ('v', '<u2')]", large));
                assert_eq!(bytes.len(), 4096 + 10 * large);
            }
        }
        table.cut(table.written()).unwrap();
        holds(values.len());
    }
}
