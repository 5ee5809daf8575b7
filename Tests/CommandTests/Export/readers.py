"""Reads exported data sets as their users do, and prints what they find as JSON.

Usage: readers.py webdataset|datasets-webdataset|imagefolder|columns-webdataset|columns-imagefolder|
       parquet FOLDER
"""
import glob
import io
import json
import os
import sys
import tempfile

kind, folder = sys.argv[1:]
shards = sorted(glob.glob(f"{folder}/*.tar"))
# Caches of the readers.
os.environ["HF_HOME"] = tempfile.mkdtemp()
os.environ["HF_HUB_OFFLINE"] = "1"


def shown(image):
    return [image.width, image.height]


if kind == "webdataset":
    import webdataset

    samples = webdataset.WebDataset(shards, shardshuffle=False).decode("pil").to_tuple("jpg", "txt")
    result = [[shown(image), caption] for image, caption in samples]
elif kind == "datasets-webdataset":
    import datasets

    datasets.disable_progress_bars()
    rows = datasets.load_dataset("webdataset", data_files=shards)["train"]
    result = [
        [shown(row[name]), row.get("txt"), row["json"]["n"]]
        for row in rows for name in row if name in ("jpg", "png")]
elif kind == "imagefolder":
    import datasets

    datasets.disable_progress_bars()
    splits = datasets.load_dataset("imagefolder", data_dir=folder)
    result = {
        split: [[shown(row["image"]), row["caption"], row["class"]] for row in rows]
        for split, rows in splits.items()}
elif kind.startswith("columns-"):
    import datasets

    datasets.disable_progress_bars()
    if kind == "columns-webdataset":
        rows = [row["json"] for row in datasets.load_dataset("webdataset", data_files=shards)["train"]]
    else:
        rows = datasets.load_dataset("imagefolder", data_dir=folder)["train"].remove_columns("image")
    result = [dict(row) for row in rows]
else:
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(folder)
    result = {
        "types": {field.name: str(field.type) for field in table.schema},
        "rows": table.to_pylist()}
print(json.dumps(result))
