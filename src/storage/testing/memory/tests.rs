use super::*;

/// Returns every image of a disk, by enumeration of all sequences of choices.
fn images(memory: &Memory) -> Vec<BTreeMap<String, Vec<u8>>> {
    let mut found = Vec::new();
    let mut path: Vec<(u64, u64)> = Vec::new();
    loop {
        let mut depth = 0;
        let image = memory.image(SECTOR, &mut |bound| {
            if depth == path.len() {
                path.push((0, bound));
            }
            depth += 1;
            path[depth - 1].0
        });
        found.push(image.names().unwrap().into_iter().map(|name| (name.clone(), image.get(&name).unwrap())).collect());
        path.truncate(depth);
        while path.last().is_some_and(|(choice, bound)| choice + 1 == *bound) {
            path.pop();
        }
        match path.last_mut() {
            Some(last) => last.0 += 1,
            None => break,
        }
    }
    found.sort();
    found.dedup();
    found
}

#[test]
fn synced_data_is_in_every_image_and_unsynced_data_in_some() {
    let memory = Memory::new();
    let file = memory.open("a", Mode::Make).unwrap();
    file.write_at(&[1; 1024], 0).unwrap();
    file.sync_all().unwrap();
    let of = |images: Vec<BTreeMap<String, Vec<u8>>>| -> Vec<Option<Vec<u8>>> {
        images.into_iter().map(|mut image| image.remove("a")).collect()
    };
    assert_eq!(of(images(&memory)), [None, Some(vec![1; 1024])], "the sync of a file does not make its name durable");
    memory.sync().unwrap();
    assert_eq!(of(images(&memory)), [Some(vec![1; 1024])]);
    // One write to three sectors, the last of them new: any subset survives, with or without the new length.
    file.write_at(&[2; 1500], 30).unwrap();
    let found = of(images(&memory));
    let expect = |sectors: [bool; 3], length: usize| {
        let mut bytes = vec![1; 1024];
        let ends = [(30, 512), (512, 1024), (1024, 1530)];
        for ((from, to), _) in ends.into_iter().zip(sectors).filter(|(_, kept)| *kept) {
            bytes.resize(bytes.len().max(to), 0);
            bytes[from..to].fill(2);
        }
        bytes.resize(bytes.len().max(length), 0);
        Some(bytes)
    };
    let mut expected: Vec<_> = (0..8)
        .flat_map(|bits| [1024, 1530].map(|length| expect([1, 2, 4].map(|bit| bits & bit != 0), length)))
        .collect();
    expected.sort();
    expected.dedup();
    assert_eq!(found, expected);
    file.forget_unsynced();
    file.sync_data().unwrap();
    assert_eq!(of(images(&memory)), [Some(vec![1; 1024])], "a sync after a failed sync writes nothing");
    assert_eq!(memory.get("a").unwrap()[30], 2, "a process does not see the loss");
}

#[test]
fn a_power_cut_keeps_name_changes_in_order_and_renames_whole() {
    let memory = Memory::new();
    memory.put("b", vec![0]);
    memory.open("a", Mode::New).unwrap();
    memory.rename("a", "b").unwrap();
    memory.remove("b").unwrap();
    let names = |image: &BTreeMap<String, Vec<u8>>| -> Vec<(String, usize)> {
        image.iter().map(|(name, bytes)| (name.clone(), bytes.len())).collect()
    };
    let mut found: Vec<_> = images(&memory).iter().map(names).collect();
    found.sort();
    let (a, old, new) = (("a".to_owned(), 0), ("b".to_owned(), 1), ("b".to_owned(), 0));
    assert_eq!(found, [vec![], vec![a, old.clone()], vec![new], vec![old]]);
}
