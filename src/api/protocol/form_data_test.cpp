// Tests forms in pieces of any size, and every kind of malformed form.
#include "protocol/form_data.hpp"

#include <gtest/gtest.h>

namespace trainyard::api {
namespace {

struct ReadForm {
  Result<void> result = ok();
  NameValues fields;
  std::string file, name, type;
  bool at_file = false, finished = false;
};

ReadForm read(std::string_view body, size_t piece = 1 << 20) {
  FormDataReader reader("b");
  ReadForm out;
  for (size_t at = 0; at < body.size() && out.result; at += piece)
    out.result = reader.feed(body.substr(at, piece), out.file);
  out.fields = reader.fields();
  out.name = reader.file_name();
  out.type = reader.file_type();
  out.at_file = reader.at_file();
  out.finished = reader.finished();
  return out;
}

std::string field(const std::string& name, const std::string& value) {
  return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n";
}

std::string file(const std::string& bytes, const std::string& more = "; filename=\"a.txt\"") {
  return "--b\r\nContent-Disposition: form-data; name=\"file\"" + more +
         "\r\nContent-Type: text/plain\r\n\r\n" + bytes + "\r\n--b--\r\n";
}

TEST(Boundary, IsReadFromTheContentType) {
  EXPECT_EQ(boundary_of("multipart/form-data; boundary=abc"), "abc");
  EXPECT_EQ(boundary_of("Multipart/Form-Data; charset=utf-8; boundary=\"a b'()+_,-./:=?\""),
            "a b'()+_,-./:=?");
  EXPECT_EQ(boundary_of("multipart/form-data"), std::nullopt);
  EXPECT_EQ(boundary_of("multipart/form-data; boundary=\"abc"), std::nullopt);
  EXPECT_EQ(boundary_of("multipart/form-data; boundary="), std::nullopt);
  EXPECT_EQ(boundary_of("multipart/form-data; boundary=\"a \""), std::nullopt);
  EXPECT_EQ(boundary_of("multipart/form-data; boundary=a{b}"), std::nullopt);
  EXPECT_EQ(boundary_of("multipart/form-data; boundary=" + std::string(71, 'a')), std::nullopt);
  EXPECT_EQ(boundary_of("multipart/form-data; other"), std::nullopt);
  EXPECT_EQ(boundary_of("multipart/mixed; boundary=abc"), std::nullopt);
}

TEST(FormData, DecodesPiecesOfAnySize) {
  const std::string bytes = "one\r\n--two\r\n-\r\n--a--b\r\nend";
  const std::string body = field("Key", "k/${filename}") + field("empty", "") + file(bytes);
  for (size_t piece = 1; piece <= body.size(); ++piece) {
    const ReadForm got = read(body, piece);
    ASSERT_TRUE(got.result) << piece << " " << got.result.error().message;
    EXPECT_EQ(got.fields, (NameValues{{"key", "k/${filename}"}, {"empty", ""}}));
    EXPECT_EQ(got.file, bytes) << piece;
    EXPECT_EQ(got.name, "a.txt");
    EXPECT_EQ(got.type, "text/plain");
    EXPECT_TRUE(got.finished);
  }
}

TEST(FormData, IgnoresFieldsAfterTheFile) {
  const ReadForm got = read("--b\r\nContent-Disposition: form-data; name=file\r\n\r\nbytes\r\n" +
                                field("acl", "public-read"),
                            3);
  ASSERT_TRUE(got.result);
  EXPECT_TRUE(got.finished);
  EXPECT_TRUE(got.fields.empty());
  EXPECT_EQ(got.file, "bytes");
}

TEST(FormData, IsNotFinishedIfTheBodyIsTruncated) {
  const std::string body = field("key", "k") + file("bytes");
  const size_t whole = body.rfind("--\r\n");
  for (size_t length = 0; length < whole; ++length)
    EXPECT_FALSE(read(body.substr(0, length)).finished) << length;
  EXPECT_TRUE(read(body.substr(0, whole)).finished);
}

TEST(FormData, RemovesDirectoriesFromFileNames) {
  EXPECT_EQ(read(file("x", "; filename=\"C:\\\\dir\\\\a b.txt\"")).name, "a b.txt");
  EXPECT_EQ(read(file("x", "; filename=\"C:\\dir\\a.txt\"")).name, "a.txt");
  EXPECT_EQ(read(file("x", "; filename=\"../../etc/passwd\"")).name, "passwd");
  EXPECT_EQ(read(file("x", "; filename=\"a\\\"b;c\"")).name, "a\"b;c");
  EXPECT_EQ(read(file("x", "")).name, "");
}

TEST(FormData, RejectsMalformedForms) {
  const std::string head = "--b\r\nContent-Disposition: ";
  for (const std::string& body :
       {std::string("--c\r\n"), std::string("\r\n--b\r\n"), std::string("--b--\r\n"),
        std::string("--bx\r\n"), std::string("--b\r\n\r\nvalue\r\n--b"),
        head + "form-data\r\n\r\nx\r\n--b--", head + "form-data; name=\"\"\r\n\r\n",
        head + "attachment; name=\"a\"\r\n\r\n", head + "form-data; name=\"a\r\n\r\n",
        head + "form-data; name=\"\xff\"\r\n\r\n", field("a", "\xff") + "--b",
        field("a", "1") + field("A", "2") + "--b", file("x", "; filename=\"\xff\""),
        field("key", "k") + "--b--\r\n"}) {
    const ReadForm got = read(body);
    ASSERT_FALSE(got.result) << body;
    EXPECT_EQ(got.result.error().kind, Kind::invalid) << body;
    EXPECT_FALSE(got.at_file);
  }
}

TEST(FormData, LimitsFields) {
  const auto kind = [](const std::string& body, size_t piece = 1 << 20) {
    const ReadForm got = read(body, piece);
    return got.result ? Kind::internal : got.result.error().kind;
  };
  EXPECT_TRUE(read(field("a", std::string(kFormFieldsBytesMax - 1, 'x')) + file("")).finished);
  EXPECT_EQ(kind(field("a", std::string(kFormFieldsBytesMax, 'x')) + file("")), Kind::exhausted);
  EXPECT_EQ(
      kind("--b\r\nContent-Disposition: form-data; name=a\r\n\r\n" + std::string(1 << 20, 'x'),
           1000),
      Kind::exhausted);
  EXPECT_EQ(kind("--b\r\n" + std::string(kFormPartHeadBytesMax + 10, 'x')), Kind::exhausted);
  EXPECT_EQ(kind(field(std::string(kFormPartHeadBytesMax, 'n'), "")), Kind::exhausted);
  std::string many;
  for (size_t i = 0; i <= kFormFieldsMax; ++i) many += field("f" + std::to_string(i), "");
  EXPECT_EQ(kind(many + file("")), Kind::exhausted);
}

}  // namespace
}  // namespace trainyard::api
