"""Tests CompleteMultipartUpload of 10,000 parts with a size of 100 GB: the parts are links to one
file of zeros."""

import os
from collections.abc import Callable

from tests.trainyard_server import Server

MEBIBYTE = 1 << 20
PARTS = 10_000
PART_BYTES = 10 * MEBIBYTE


def test_ten_thousand_parts_become_one_object(start: Callable[..., Server]) -> None:
    server = start()
    s3 = server.boto("s3")
    s3.create_bucket(Bucket="yard")
    upload = s3.create_multipart_upload(Bucket="yard", Key="large")["UploadId"]
    arguments = {"Bucket": "yard", "Key": "large", "UploadId": upload}
    etag = s3.upload_part(PartNumber=1, Body=bytes(PART_BYTES), **arguments)["ETag"]
    directory = os.path.join(server.data, "objects/buckets/yard/uploads", upload)
    for number in range(2, PARTS + 1):
        os.link(os.path.join(directory, "00001"), os.path.join(directory, f"{number:05}"))
    parts = {"Parts": [{"PartNumber": number, "ETag": etag} for number in range(1, PARTS + 1)]}
    done = s3.complete_multipart_upload(MultipartUpload=parts, **arguments)
    assert done["ETag"].endswith(f'-{PARTS}"')
    assert (
        s3.complete_multipart_upload(MultipartUpload=parts, **arguments)["ETag"] == done["ETag"]
    ), "a repeated request has the same answer"
    assert s3.head_object(Bucket="yard", Key="large")["ContentLength"] == PARTS * PART_BYTES
    last = s3.get_object(Bucket="yard", Key="large", Range=f"bytes={PARTS * PART_BYTES - 5}-")
    assert last["Body"].read() == bytes(5)
    across = s3.get_object(
        Bucket="yard", Key="large", Range=f"bytes={7 * PART_BYTES - 3}-{7 * PART_BYTES + 3}"
    )
    assert across["Body"].read() == bytes(7)
    s3.delete_object(Bucket="yard", Key="large")
    assert not os.listdir(os.path.join(server.data, "objects/buckets/yard/parts"))
