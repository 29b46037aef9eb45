//! The metadata of a published directory as an RO-Crate 1.1: JSON-LD that archives and search engines read.

use super::manifest::{FileEntry, Manifest};
use crate::checkpoint::journal::Origin;
use serde_json::{Value, json};

/// What the publisher states.
#[derive(Clone, Debug)]
pub struct Publication<'a> {
    /// Address of the licence of the published data.
    pub licence: &'a str,
    /// Names of the authors.
    pub authors: &'a [String],
    /// The date, as YYYY-MM-DD.
    pub date: &'a str,
}

/// Returns the media type of a published file, by its name.
fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("json") => "application/json",
        Some("csv") => "text/csv",
        Some("md") => "text/markdown",
        Some("png") => "image/png",
        Some("svg") => "image/svg+xml",
        _ => "text/plain",
    }
}

/// Returns the text of `ro-crate-metadata.json` for a manifest and all files beside it.
#[must_use]
pub fn ro_crate(manifest: &Manifest, files: &[FileEntry], publication: &Publication<'_>) -> String {
    let Manifest { game, count, digest, computed, .. } = manifest;
    let reference = |id: &str| json!({ "@id": id });
    let authors: Vec<String> = (1..=publication.authors.len()).map(|i| format!("#author-{i}")).collect();
    let mut root = json!({
        "@id": "./",
        "@type": "Dataset",
        "name": format!("Nim-values of {game}, {count} values"),
        "description": format!("Exact nim-values G(0), ..., G({}) of the heap game {game}. Digest of all values: \
            {digest}. manifest.json states the digest after every {} values.", count.saturating_sub(1), manifest.segment),
        "datePublished": publication.date,
        "license": reference(publication.licence),
        "hasPart": files.iter().map(|file| reference(&file.name)).collect::<Vec<Value>>(),
        "mentions": reference("#computation"),
    });
    // A single value stands without an array.
    match authors.as_slice() {
        [] => {}
        [one] => root["author"] = reference(one),
        several => root["author"] = several.iter().map(|id| reference(id)).collect(),
    }
    let mut graph = vec![
        json!({
            "@id": "ro-crate-metadata.json",
            "@type": "CreativeWork",
            "conformsTo": reference("https://w3id.org/ro/crate/1.1"),
            "about": reference("./"),
        }),
        root,
        json!({
            "@id": publication.licence,
            "@type": "CreativeWork",
            "name": publication.licence,
            "description": "The licence of the published data",
        }),
        json!({
            "@id": "#computation",
            "@type": "CreateAction",
            "name": format!("Computation of {count} values"),
            "description": format!("kernel {}, {} s of computing time, {} failed checks",
                Origin::kernels(&computed.origins).join(", "), computed.seconds, computed.errors),
            "endTime": computed.time,
            "instrument": reference("#program"),
            "result": reference("./"),
        }),
        json!({
            "@id": "#program",
            "@type": "SoftwareApplication",
            "name": "grundy",
            "version": computed.program,
        }),
    ];
    for (id, name) in authors.iter().zip(publication.authors) {
        graph.push(json!({ "@id": id, "@type": "Person", "name": name }));
    }
    graph.extend(files.iter().map(|file| {
        json!({
            "@id": file.name,
            "@type": "File",
            "name": file.name,
            "contentSize": file.bytes.to_string(),
            "encodingFormat": media_type(&file.name),
            "sha256": file.sha256,
        })
    }));
    let text = json!({ "@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph });
    serde_json::to_string_pretty(&text).expect("numbers and text are JSON") + "\n"
}
