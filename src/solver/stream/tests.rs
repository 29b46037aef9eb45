use super::*;
use crate::solver::values;
use crate::theory::rule::{Leaves, Move};

/// Compares a stream that retains every value up to `whole` with [`values`]; returns the number of restarts, and
/// the largest number of retained values after the stream had `whole` of them.
fn streamed(rule: &Rule, method: Method, to: usize, whole: u64) -> (u64, u64) {
    let all = values(rule, method, to).unwrap();
    let mut stream = ValueStream::retaining(rule, method, to as u64, whole).unwrap();
    let mut count = 0;
    let (mut restarts, mut whole, mut most) = (0, stream.whole, 0);
    while let Some((from, chunk)) = stream.next_chunk().unwrap() {
        assert_eq!(from, count, "{rule}");
        assert_eq!(chunk, &all[index(from)..][..chunk.len()], "{rule} from {from}");
        count += chunk.len() as u64;
        if stream.whole != whole {
            restarts += 1;
            whole = stream.whole;
            most = 0;
        }
        let freed = stream.past.discarded();
        if count > whole {
            most = most.max(count - (freed.end - freed.start));
        }
    }
    assert_eq!(count, to as u64, "{rule}");
    assert_eq!(stream.next_chunk().unwrap(), None);
    (restarts, most)
}

/// In .324 the witness search for n = 657331 reads further back than twice the lookback, and than the first 2^16
/// values.
#[test]
fn deep_witness_search_restarts_the_stream_and_changes_no_value() {
    let rule: Rule = ".324".parse().unwrap();
    let (restarts, most) = streamed(&rule, Method::default(), 1_000_000, 1 << 16);
    assert_eq!((restarts, most), (1, 0), "the second time every value is retained");
    let (restarts, most) = streamed(&rule, Method::default(), 3_000_000, 1 << 16);
    assert!(restarts >= 1 && most > 0, "the second time some are discarded again");
}

/// At the latest at the end, or when the stream has computed the values handed out a second time.
#[test]
fn a_bit_flip_ends_the_stream() {
    let rule: Rule = "0.6".parse().unwrap();
    let other = |stream: &mut ValueStream| {
        let mut before = stream.computed;
        before.add(&[1; 50_000]);
        stream.before = Some(before);
    };
    let harms: [fn(&mut ValueStream); 2] = [|stream| stream.solver.flip(), other];
    for harm in harms {
        let mut stream = ValueStream::retaining(&rule, Method::default(), 400_000, 1 << 16).unwrap();
        while stream.next_chunk().unwrap().is_some_and(|(from, values)| from + (values.len() as u64) < 100_000) {}
        harm(&mut stream);
        let error = loop {
            match stream.next_chunk() {
                Ok(chunk) => assert!(chunk.is_some(), "the stream ended"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Flipped { .. }), "{error}");
    }
}

#[test]
fn game_with_a_window_retains_only_that() {
    for game in ["grundy", "kayles", ".106", "remove-a-square", ".16"] {
        let rule: Rule = game.parse().unwrap();
        let (restarts, most) = streamed(&rule, Method::default(), 1_000_000, 100_000);
        assert_eq!(restarts, 0, "{game}");
        assert!(most > 0 && most < 600_000, "{game}: {most} values are retained");
    }
}

#[test]
fn game_without_a_window_retains_all_values() {
    let dawson: Rule = "0.07".parse().unwrap();
    assert_eq!(streamed(&dawson, Method::default(), 20_000, 1000), (0, 20_000));
    let grundy: Rule = "grundy".parse().unwrap();
    assert_eq!(streamed(&grundy, Method::Definition, 3000, 1000), (0, 3000));
}

#[test]
fn game_without_splits_retains_its_largest_removal() {
    let rule: Rule = "0.333".parse().unwrap();
    let (restarts, most) = streamed(&rule, Method::default(), 100_000, 1);
    assert_eq!(restarts, 0);
    assert!(most < 100_000, "{most} values are retained");
    assert_eq!(ValueStream::new(&rule, Method::default(), 0).unwrap().next_chunk().unwrap(), None);
}

#[test]
fn values_before_one_that_is_too_large_are_handed_out() {
    // The options of a heap of 5000 have all values.
    const LARGE: u64 = 5000;
    let single = |remove, constant, leaves| Move { remove, constant, leaves };
    let leap = (0..=u16::MAX).map(|constant| single(LARGE, constant, Leaves::Nothing));
    let moves = [Leaves::Nothing, Leaves::One].map(|leaves| single(1, 0, leaves)).into_iter().chain(leap).collect();
    let rule = Rule::from_moves("leaping", moves).unwrap();
    let mut stream = ValueStream::new(&rule, Method::default(), 100_000).unwrap();
    let mut count = 0;
    let error = loop {
        match stream.next_chunk() {
            Ok(Some((from, chunk))) => {
                assert!((from..).zip(chunk).all(|(n, &value)| n % 2 == u64::from(value)));
                count += chunk.len();
            }
            Ok(None) => panic!("a value is above 65535"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::ValueTooLarge { n: LARGE }), "{error}");
    assert_eq!(count as u64, LARGE);
    assert_eq!(stream.next_chunk().unwrap(), None);
}
