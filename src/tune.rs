//! Writes sequences as tunes. R. K. Guy suggested playing the values of Grundy's game on a piano, 0 as middle C, 1 as
//! D, 2 as E, and so on; he found that the values of .6 give a waltz (article in Eureka 16 on Grundy's theorem).
//!
//! A value v is the v-th white key from middle C upwards, seven per octave. v = 39 is the last white key of MIDI, the
//! G of note 127. A larger value is moved down by octaves into the seven highest keys, those of 33 to 39, and so
//! keeps the name of its note. Every value is a note of one beat.
//!
//! The file is a Standard MIDI File of format 0, one track: name, tempo, time signature, notes.

use crate::error::{Error, Result};
use midly::num::{u4, u7, u15, u24, u28};
use midly::{Format, Header, MetaMessage, MidiMessage, Smf, Timing, TrackEvent, TrackEventKind};

/// Largest value with a key of its own.
pub const HIGHEST: u16 = 39;

/// Maximum number of notes in a tune.
pub const MAX_NOTES: usize = 1 << 20;

/// Number of MIDI ticks per beat.
const BEAT: u16 = 480;

/// Tempo and bar of a tune.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Playing {
    /// Beats per minute, at least 4.
    pub tempo: u32,
    /// Beats, which are quarter notes, per bar; 3 gives a waltz.
    pub bar: u8,
}

/// Returns the MIDI note of a value, in 60..=127, where 60 is middle C.
///
/// ```
/// use grundy::tune::note;
/// assert_eq!([0, 1, 2, 3, 7].map(note), [60, 62, 64, 65, 72]); // C D E F, and C an octave up
/// assert_eq!(note(40), note(33));
/// ```
#[must_use]
pub fn note(value: u16) -> u8 {
    const KEYS: [u8; 7] = [0, 2, 4, 5, 7, 9, 11];
    let lowest_of_seven = HIGHEST - 6;
    let key = if value > HIGHEST { lowest_of_seven + (value - lowest_of_seven) % 7 } else { value };
    let octave = u8::try_from(key / 7).expect("at most 5");
    60 + 12 * octave + KEYS[usize::from(key % 7)]
}

/// Returns the bytes of a MIDI file that plays the values.
///
/// # Errors
/// [`Error::Tune`] for more than [`MAX_NOTES`] values, or a tempo that the format cannot represent.
pub fn file(name: &str, values: &[u16], playing: Playing) -> Result<Vec<u8>> {
    if values.len() > MAX_NOTES {
        return Err(Error::Tune(format!("{} notes; a tune has at most {MAX_NOTES}", values.len())));
    }
    let beat = 60_000_000u32.checked_div(playing.tempo).and_then(u24::try_from).filter(|beat| beat.as_int() > 0);
    let Some(beat) = beat else {
        return Err(Error::Tune(format!("{} beats a minute; a tune has 4 to 60000000", playing.tempo)));
    };
    let meta = |message| TrackEvent { delta: u28::new(0), kind: TrackEventKind::Meta(message) };
    let sound = |delta, message| TrackEvent { delta, kind: TrackEventKind::Midi { channel: u4::new(0), message } };
    let mut track = vec![
        meta(MetaMessage::TrackName(name.as_bytes())),
        meta(MetaMessage::Tempo(beat)),
        // Quarter notes (2^2), 24 metronome clocks per beat, 8 thirty-second notes per quarter note.
        meta(MetaMessage::TimeSignature(playing.bar, 2, 24, 8)),
        sound(u28::new(0), MidiMessage::ProgramChange { program: u7::new(0) }),
    ];
    for &value in values {
        let (key, vel) = (u7::new(note(value)), u7::new(80));
        track.push(sound(u28::new(0), MidiMessage::NoteOn { key, vel }));
        track.push(sound(u28::new(BEAT.into()), MidiMessage::NoteOff { key, vel: u7::new(0) }));
    }
    track.push(meta(MetaMessage::EndOfTrack));
    let header = Header::new(Format::SingleTrack, Timing::Metrical(u15::new(BEAT)));
    let mut bytes = Vec::new();
    Smf { header, tracks: vec![track] }.write_std(&mut bytes).map_err(Error::io("writing", name))?;
    Ok(bytes)
}
