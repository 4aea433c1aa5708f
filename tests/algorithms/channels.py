"""Makes the channels of training jobs on objects of one bucket."""

from typing import Any


def channel(
    name: str,
    prefix: str,
    content_type: str = "text/csv",
    sharded: bool = False,
    mode: str = "File",
) -> dict[str, Any]:
    return {
        "ChannelName": name,
        "ContentType": content_type,
        "InputMode": mode,
        "DataSource": {
            "S3DataSource": {
                "S3DataType": "S3Prefix",
                "S3Uri": f"s3://yard/{prefix}",
                "S3DataDistributionType": "ShardedByS3Key" if sharded else "FullyReplicated",
            }
        },
    }
