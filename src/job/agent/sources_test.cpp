#include "agent/sources.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "os/files.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::agent {
namespace {

domain::JobSpec script_spec() {
  domain::JobSpec spec;
  spec.hyperparameters = {{"sagemaker_program", "\"train.py\""},
                          {"sagemaker_submit_directory", "\"s3://bucket/job/sourcedir.tar.gz\""}};
  return spec;
}

TEST(Sources, AreRunByEntryIfTheImageCannotRunThem) {
  domain::Image machine, oci;
  oci.kind = domain::Image::Kind::oci;
  const ReadyImage plain;
  EXPECT_TRUE(runs_script(script_spec(), machine, plain, false));
  EXPECT_TRUE(runs_script(script_spec(), oci, plain, false));
  EXPECT_FALSE(runs_script(script_spec(), oci, plain, true)) << "the image has a toolkit";
  EXPECT_FALSE(runs_script({}, machine, plain, false)) << "no program is named";

  ReadyImage own = plain;
  own.entrypoint = {"/bin/trainer"};
  EXPECT_FALSE(runs_script(script_spec(), machine, own, false));
  EXPECT_TRUE(runs_script(script_spec(), oci, own, false))
      << "its entrypoint runs the command that it gets";
  ReadyImage names_program = plain;
  names_program.environment["SAGEMAKER_PROGRAM"] = "train.py";
  EXPECT_TRUE(runs_script({}, oci, names_program, false));

  auto command = script_spec();
  command.entrypoint = {"/bin/sh"};
  EXPECT_FALSE(runs_script(command, machine, plain, false));
  command = script_spec();
  command.arguments = {"serve"};
  EXPECT_FALSE(runs_script(command, machine, plain, false));
  auto variable = domain::JobSpec();
  variable.environment["SAGEMAKER_PROGRAM"] = "train.py";
  EXPECT_TRUE(runs_script(variable, machine, plain, false));
}

TEST(Sources, AreInTheArchiveThatTheJobNames) {
  auto spec = script_spec();
  EXPECT_EQ(source_archive(spec), "s3://bucket/job/sourcedir.tar.gz");
  spec.hyperparameters["sagemaker_submit_directory"] = "s3://bucket/plain";
  EXPECT_EQ(source_archive(spec), "s3://bucket/plain");
  spec.hyperparameters["sagemaker_submit_directory"] = "/opt/ml/input/data/code/sourcedir.tar.gz";
  EXPECT_EQ(source_archive(spec), "input/data/code/sourcedir.tar.gz");
  spec.hyperparameters["sagemaker_submit_directory"] = "/opt/program";
  EXPECT_EQ(source_archive(spec), "");
  spec.hyperparameters.erase("sagemaker_submit_directory");
  EXPECT_EQ(source_archive(spec), "");
  spec.environment["SAGEMAKER_SUBMIT_DIRECTORY"] = "s3://bucket/variable";
  EXPECT_EQ(source_archive(spec), "s3://bucket/variable");
}

TEST(ImageHasProgram, FollowsLinksWithinTheImage) {
  os::TemporaryDirectory directory;
  const std::string root = directory.path() + "/root";
  ASSERT_TRUE(os::make_directories(root + "/usr/bin"));
  ASSERT_TRUE(os::write_file(root + "/usr/bin/train", "#!/bin/sh\n", 0755));
  ASSERT_TRUE(os::write_file(root + "/usr/bin/plain", "", 0644));
  // An absolute link, which stays within the root of the image.
  std::filesystem::create_directory_symlink("/usr/bin", root + "/bin");
  std::filesystem::create_symlink("/bin/sh", root + "/usr/bin/outside");
  EXPECT_TRUE(image_has_program(root, "/nowhere:/bin", "train"));
  EXPECT_TRUE(image_has_program(root, "", "train"));
  EXPECT_FALSE(image_has_program(root, "/nowhere", "train"));
  EXPECT_FALSE(image_has_program(root, "/bin", "plain")) << "it is not executable";
  EXPECT_FALSE(image_has_program(root, "/bin", "outside"))
      << "this machine's shell is not the image's";
  EXPECT_FALSE(image_has_program(root + "/none", "/bin", "train"));
}

// Returns a gzipped tar of the entries.
std::string archive_of(const std::vector<std::pair<TarEntry, std::string>>& entries) {
  std::string bytes;
  auto tar = write_tar(Compression::gzip, [&](std::span<const char> part) -> Result<void> {
    bytes.append(part.data(), part.size());
    return {};
  });
  for (auto [entry, content] : entries) {
    entry.bytes = content.size();
    size_t at = 0;
    EXPECT_TRUE(
        (*tar)->add(entry, [&, &content = content](std::span<char> buffer) -> Result<size_t> {
          const size_t taken = std::min(buffer.size(), content.size() - at);
          std::copy_n(content.data() + at, taken, buffer.data());
          at += taken;
          return taken;
        }));
  }
  EXPECT_TRUE((*tar)->finish());
  return bytes;
}

Result<void> unpack(const std::string& bytes, const std::string& directory) {
  Interruption interruption;
  size_t at = 0;
  return unpack_sources(
      [&](std::span<char> buffer) -> Result<size_t> {
        const size_t taken = std::min(buffer.size(), bytes.size() - at);
        std::copy_n(bytes.data() + at, taken, buffer.data());
        at += taken;
        return taken;
      },
      *Tree::open(directory), interruption);
}

TarEntry file(const std::string& name, uint32_t mode = 0644) {
  TarEntry entry;
  entry.name = name;
  entry.mode = mode;
  return entry;
}

TEST(Sources, UnpackTheArchive) {
  os::TemporaryDirectory directory;
  TarEntry link;
  link.name = "latest.py";
  link.type = TarEntry::Type::link;
  link.link_target = "train.py";
  ASSERT_TRUE(unpack(
      archive_of({{file("train.py"), "print(1)"}, {file("bin/go.sh", 0755), "#!"}, {link, ""}}),
      directory.path()));
  EXPECT_EQ(*os::read_file(directory.path() + "/train.py"), "print(1)");
  EXPECT_EQ(::access((directory.path() + "/bin/go.sh").c_str(), X_OK), 0);
  EXPECT_EQ(std::filesystem::read_symlink(directory.path() + "/latest.py"), "train.py");
  EXPECT_FALSE(
      unpack("this is not an archive, but it is long enough to be read as one", directory.path()));
}

TEST(Sources, AreNotUnpackedThroughALink) {
  os::TemporaryDirectory directory;
  ASSERT_TRUE(os::make_directories(directory.path() + "/code/real"));
  TarEntry link;
  link.name = "folder";
  link.type = TarEntry::Type::link;
  link.link_target = "real";
  const auto done =
      unpack(archive_of({{link, ""}, {file("folder/x"), "1"}}), directory.path() + "/code");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, Kind::corrupt);
  EXPECT_FALSE(os::exists(directory.path() + "/code/real/x"));
}

TEST(Sources, CopyTheCodeOfTheImage) {
  os::TemporaryDirectory directory;
  const std::string root = directory.path() + "/root", code = directory.path() + "/code";
  ASSERT_TRUE(os::make_directories(root + "/opt/ml/code/deep"));
  ASSERT_TRUE(os::make_directories(code));
  ASSERT_TRUE(os::write_file(root + "/opt/ml/code/train.py", "print(1)", 0755));
  ASSERT_TRUE(os::write_file(root + "/opt/ml/code/deep/data", "2"));
  Interruption interruption;
  ASSERT_TRUE(copy_image_code(root, *Tree::open(code), interruption));
  EXPECT_EQ(*os::read_file(code + "/train.py"), "print(1)");
  EXPECT_EQ(*os::read_file(code + "/deep/data"), "2");
  EXPECT_TRUE(copy_image_code(directory.path() + "/code", *Tree::open(code), interruption))
      << "an image without /opt/ml/code";
}

TEST(GangSecret, DiffersByAttemptAndToken) {
  const auto secret = gang_secret({7, 1}, "token");
  EXPECT_EQ(secret.size(), 64u);
  EXPECT_EQ(secret, gang_secret({7, 1}, "token"));
  EXPECT_NE(secret, gang_secret({7, 2}, "token"));
  EXPECT_NE(secret, gang_secret({7, 1}, "other"));
}

// Returns a tar whose only header declares `bytes` bytes of content; none follows.
std::string tar_that_declares(int64_t bytes) {
  std::string header(512, '\0');
  header.replace(0, 4, "file");
  header.replace(100, 7, "0000644");
  header.replace(257, 8,
                 std::string("ustar\0"
                             "00",
                             8));
  header[156] = '0';
  // GNU's form of large numbers: 12 bytes, the first one 0x80, or 0xff if it is negative.
  for (size_t i = 0; i < 12; ++i)
    header[124 + i] = i < 4 ? char(bytes < 0 ? 0xff
                                   : i == 0  ? 0x80
                                             : 0)
                            : char(uint64_t(bytes) >> (8 * (11 - i)));
  header.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char each : header) sum += static_cast<unsigned char>(each);
  char text[16];
  std::snprintf(text, sizeof text, "%06o", sum);
  header.replace(148, 7, std::string(text, 7));
  return header;
}

TEST(Sources, AreRejectedIfTheArchiveDeclaresTooManyBytes) {
  os::TemporaryDirectory directory;
  const auto length_read = [](int64_t bytes) -> Result<uint64_t> {
    const std::string tar = tar_that_declares(bytes);
    size_t at = 0;
    const auto reader = TRY(read_tar([&](std::span<char> buffer) -> Result<size_t> {
      const size_t taken = std::min(buffer.size(), tar.size() - at);
      std::copy_n(tar.data() + at, taken, buffer.data());
      at += taken;
      return taken;
    }));
    const auto entry = TRY(reader->next());
    return entry ? entry->bytes : UINT64_MAX;
  };
  for (const int64_t bytes :
       {int64_t(0), int64_t(1) << 31, int64_t(1) << 32, int64_t(kTarFileBytesMax)}) {
    const auto read = length_read(bytes);
    ASSERT_TRUE(read) << bytes << ": " << read.error().message;
    EXPECT_EQ(*read, uint64_t(bytes));
  }
  for (const int64_t bytes :
       {int64_t(-1), INT64_MIN, int64_t(kTarFileBytesMax) + 1, INT64_MAX - 1, INT64_MAX}) {
    const auto read = length_read(bytes);
    ASSERT_FALSE(read) << bytes << ": " << *read;
    EXPECT_EQ(read.error().kind, Kind::corrupt) << bytes;
  }
  const auto unpacked = unpack(tar_that_declares(int64_t(kSourceBytesMax) + 1), directory.path());
  ASSERT_FALSE(unpacked);
  EXPECT_EQ(unpacked.error().kind, Kind::exhausted);
}

}  // namespace
}  // namespace trainyard::agent
