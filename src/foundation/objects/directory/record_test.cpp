#include "objects/directory/record.hpp"

#include <gtest/gtest.h>

#include "objects/directory/part_list.hpp"
#include "objects/directory/upload_file.hpp"

namespace trainyard::objects {
namespace {

constexpr const char* kUploadId = "0123456789abcdef0123456789abcdef";

Record plain() {
  Record record;
  record.info.key = "a/b";
  record.info.bytes = 5;
  record.info.etag = "5d41";
  record.info.modified = from_milliseconds(7);
  record.info.content_type = "text/plain";
  return record;
}

Record of_parts() {
  Record record = plain();
  record.info.headers = {{"cache-control", "no-store"}};
  record.info.metadata = {{"by", "ann"}};
  record.info.checksums = {{"crc32c", "x"}};
  record.info.owner = "ann";
  record.info.tags = {{"team", "blue"}};
  record.info.bytes = 12 << 20;
  record.upload_id = kUploadId;
  record.parts = 2;
  return record;
}

std::string text_of(const Record& record) {
  const std::string bytes = encode_record(record);
  return bytes.substr(0, bytes.size() - kTailBytes);
}

Result<std::optional<Record>> read_back(const Record& record) {
  const std::string end = encode_record(record);
  return decode_record(end, body_bytes(record) + end.size());
}

// Earlier releases wrote these bytes after objects.
TEST(ObjectRecord, EncodesTheDocumentedFormat) {
  EXPECT_EQ(text_of(plain()),
            R"({"content_type":"text/plain","etag":"5d41","key":"a/b","modified_ms":7})");
  EXPECT_EQ(text_of(of_parts()),
            R"({"bytes":12582912,"checksums":{"crc32c":"x"},"content_type":"text/plain",)"
            R"("etag":"5d41","headers":{"cache-control":"no-store"},"key":"a/b",)"
            R"("metadata":{"by":"ann"},"modified_ms":7,"owner":"ann","parts":2,)"
            R"("tags":{"team":"blue"},"upload_id":"0123456789abcdef0123456789abcdef"})");
}

TEST(ObjectRecord, DecodesToTheEncodedRecord) {
  for (const Record& record : {plain(), of_parts()}) {
    const auto read = read_back(record);
    ASSERT_TRUE(read && *read);
    EXPECT_EQ(text_of(**read), text_of(record));
    EXPECT_EQ((*read)->info.bytes, record.info.bytes);
  }
}

TEST(ObjectRecord, ARecordOfPartsNeedsAnUploadIdAndAValidLength) {
  Record nameless = of_parts(), huge = of_parts();
  nameless.upload_id = "../x";
  huge.info.bytes = kObjectBytesMax + 1;
  EXPECT_EQ(read_back(nameless).error().kind, Kind::corrupt);
  EXPECT_EQ(read_back(huge).error().kind, Kind::corrupt);
}

UploadFile an_upload() {
  UploadFile upload;
  upload.info.key = "a/b";
  upload.info.started = from_milliseconds(7);
  upload.options.content_type = "text/plain";
  upload.options.metadata = {{"by", "ann"}};
  upload.options.checksum_of_whole = true;
  return upload;
}

TEST(UploadFile, EncodesTheDocumentedFormat) {
  EXPECT_EQ(encode_upload(an_upload()),
            R"({"checksum_of_whole":true,"checksums":{},"content_type":"text/plain",)"
            R"("headers":{},"key":"a/b","metadata":{"by":"ann"},"only_if_absent":false,)"
            R"("owner":"","started_ms":7})");
  UploadFile tagged = an_upload();
  tagged.options.tags = {{"team", "blue"}};
  EXPECT_EQ(decode_upload(encode_upload(tagged))->options.tags, tagged.options.tags);
}

TEST(UploadFile, DecodesToTheEncodedUpload) {
  const auto read = decode_upload(encode_upload(an_upload()));
  ASSERT_TRUE(read);
  EXPECT_EQ(encode_upload(*read), encode_upload(an_upload()));
  EXPECT_FALSE(decode_upload("{}"));
  EXPECT_FALSE(decode_upload(R"({"key":"a/b","metadata":{"by":7}})"));
}

}  // namespace
}  // namespace trainyard::objects
