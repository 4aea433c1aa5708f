#include "agent/files/artifact.hpp"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "os/temporary_directory.hpp"

namespace trainyard::agent {
namespace {

Source source_of(std::string bytes) {
  return
      [bytes = std::move(bytes), at = size_t{0}](std::span<char> buffer) mutable -> Result<size_t> {
        const size_t size = std::min({buffer.size(), bytes.size() - at, size_t{777}});
        std::copy_n(bytes.data() + at, size, buffer.data());
        at += size;
        return size;
      };
}

Sink sink_into(std::string& bytes) {
  return [&bytes](std::span<const char> more) -> Result<void> {
    bytes.append(more.data(), more.size());
    return {};
  };
}

// Returns "name=content name/ name->target" of a tar.
std::string contents(const std::string& tar) {
  auto reader = read_tar(source_of(tar));
  std::string text;
  for (;;) {
    auto entry = (*reader)->next();
    if (!entry) return "ERROR " + entry.error().message;
    if (!*entry) return text;
    if (!text.empty()) text += " ";
    const auto& found = **entry;
    if (found.type == TarEntry::Type::directory) text += found.name + "/";
    if (found.type == TarEntry::Type::link) text += found.name + "->" + found.link_target;
    if (found.type == TarEntry::Type::file) {
      std::string content(found.bytes, '\0');
      size_t have = 0;
      while (have < content.size()) {
        const auto got = (*reader)->read(std::span(content).subspan(have));
        if (!got || *got == 0) return "ERROR content";
        have += *got;
      }
      text += found.name + "=" + content;
    }
  }
}

// Returns a tar of files (name -> content), made without the writer so that it may be hostile.
std::string tar_of(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string bytes;
  auto tar = *write_tar(Compression::none, sink_into(bytes));
  for (const auto& [name, content] : files) {
    TarEntry entry;
    entry.name = name;
    if (name.ends_with('/')) entry.type = TarEntry::Type::directory;
    entry.bytes = content.size();
    EXPECT_TRUE(tar->add(entry, source_of(content)));
  }
  EXPECT_TRUE(tar->finish());
  return bytes;
}

class ArtifactTest : public testing::Test {
 protected:
  ArtifactTest() {
    EXPECT_TRUE(os::make_directories(path("model")));
    tar_ = *write_tar(Compression::none, sink_into(bytes_));
    artifact_ = std::make_unique<Artifact>(*tar_, "/opt/ml/model", job_log_, interruption_);
  }
  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }
  void file(const std::string& name, const std::string& content) {
    ASSERT_TRUE(os::make_directories(path("model/" + name.substr(0, name.find_last_of('/') + 1))));
    ASSERT_TRUE(os::write_file(path("model/" + name), content));
  }
  Result<void> add_own() {
    return artifact_->add_tree(*Tree::open(directory_.path()), "model", "algo-1");
  }
  std::string finished() {
    EXPECT_TRUE(tar_->finish());
    return contents(bytes_);
  }

  os::TemporaryDirectory directory_;
  Interruption interruption_;
  std::vector<std::string> said_;
  JobLog job_log_{[this](const std::string& text) { said_.push_back(text); }};
  std::string bytes_;
  std::unique_ptr<TarWriter> tar_;
  std::unique_ptr<Artifact> artifact_;
};

TEST_F(ArtifactTest, AHostsFilesAreInTheOrderOfTheirNames) {
  file("b.bin", "two");
  file("a/x.bin", "one");
  ASSERT_TRUE(add_own());
  EXPECT_EQ(finished(), "a/ a/x.bin=one b.bin=two");
}

TEST_F(ArtifactTest, KeepsBothFilesOfTheSameName) {
  file("model.bin", "first");
  file("d/own", "1");
  ASSERT_TRUE(add_own());
  ASSERT_TRUE(artifact_->add_tar(
      source_of(tar_of({{"model.bin", "second"}, {"d/", ""}, {"d/other", "2"}})), "algo-2"));
  ASSERT_TRUE(artifact_->add_tar(source_of(tar_of({{"model.bin", "third"}})), "algo-3"));
  EXPECT_EQ(finished(),
            "d/ d/own=1 model.bin=first model.bin.algo-2=second d/other=2 model.bin.algo-3=third");
  ASSERT_EQ(said_.size(), 2u);
  EXPECT_NE(said_[0].find("/opt/ml/model/model.bin of algo-2 was kept as model.bin.algo-2"),
            std::string::npos);
}

TEST_F(ArtifactTest, AFileWhereAnotherHasADirectoryIsRenamed) {
  file("x", "file");
  ASSERT_TRUE(add_own());
  ASSERT_TRUE(
      artifact_->add_tar(source_of(tar_of({{"x/", ""}, {"x/a", "1"}, {"x/b", "2"}})), "algo-2"));
  ASSERT_TRUE(artifact_->add_tar(source_of(tar_of({{"x.algo-2", "3"}})), "algo-3"));
  EXPECT_EQ(finished(), "x=file x.algo-2/ x.algo-2/a=1 x.algo-2/b=2 x.algo-2.algo-3=3");
}

TEST_F(ArtifactTest, TraversalInAStagedTarIsRefused) {
  for (const char* name : {"../evil", "a/../../evil", "/etc/passwd"}) {
    const auto added = artifact_->add_tar(source_of(tar_of({{name, "x"}})), "algo-2");
    ASSERT_FALSE(added) << name;
    EXPECT_EQ(added.error().kind, Kind::corrupt);
  }
}

TEST_F(ArtifactTest, LinksThatLeadOutAreLeftOut) {
  file("step-9/model.bin", "m");
  ASSERT_EQ(::symlink("step-9", path("model/latest").c_str()), 0);
  ASSERT_EQ(::symlink("/opt/ml/model/step-9/model.bin", path("model/step-9/best").c_str()), 0);
  ASSERT_EQ(::symlink("/etc/passwd", path("model/secret").c_str()), 0);
  ASSERT_EQ(::symlink("../../etc", path("model/up").c_str()), 0);
  ASSERT_EQ(::mkfifo(path("model/pipe").c_str(), 0600), 0);
  ASSERT_TRUE(add_own());
  EXPECT_EQ(finished(),
            "latest->step-9 step-9/ step-9/best->../step-9/model.bin step-9/model.bin=m");
  EXPECT_EQ(said_.size(), 3u);
}

TEST_F(ArtifactTest, AModelFolderThatIsALinkIsEmpty) {
  ASSERT_EQ(::rmdir(path("model").c_str()), 0);
  ASSERT_EQ(::symlink("/etc", path("model").c_str()), 0);
  ASSERT_TRUE(add_own());
  EXPECT_EQ(finished(), "");
  EXPECT_EQ(Tree::open(directory_.path())->read_start("model/passwd", 10), "");
}

TEST_F(ArtifactTest, DevicesAndMountsAreLeftOut) {
  file("a", "1");
  file("mounted/own", "hidden");
  ASSERT_TRUE(os::make_directories(path("machine")));
  ASSERT_TRUE(os::write_file(path("machine/shadow"), "secret"));
  ASSERT_EQ(::mknod(path("model/zero").c_str(), S_IFCHR | 0666, makedev(1, 5)), 0);
  ASSERT_EQ(
      ::mount(path("machine").c_str(), path("model/mounted").c_str(), nullptr, MS_BIND, nullptr),
      0);
  ASSERT_TRUE(add_own());
  ASSERT_EQ(::umount2(path("model/mounted").c_str(), MNT_DETACH), 0);
  // Mounts are not visible: the tree shows the job's own files beneath them.
  EXPECT_EQ(finished(), "a=1 mounted/ mounted/own=hidden");
}

TEST_F(ArtifactTest, KeepsNamesOfAnyBytes) {
  file("gr\xC3\xBC\xC3\x9F.bin", "utf-8");
  file("\xFF.bin", "no utf-8");
  file(std::string(200, 'l') + "/" + std::string(200, 'n'), "long");
  ASSERT_TRUE(add_own());
  const auto text = finished();
  EXPECT_NE(text.find("gr\xC3\xBC\xC3\x9F.bin=utf-8"), std::string::npos) << text;
  EXPECT_NE(text.find("\xFF.bin=no utf-8"), std::string::npos) << text;
  EXPECT_NE(text.find(std::string(200, 'n') + "=long"), std::string::npos) << text;
}

TEST_F(ArtifactTest, EndsAtAnInterruption) {
  file("a", "1");
  interruption_.order();
  const auto added = add_own();
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().kind, Kind::cancelled);
}

TEST_F(ArtifactTest, EqualFilesGiveEqualBytes) {
  file("a", std::string(100'000, 'x'));
  std::string archives[2];
  for (auto& bytes : archives) {
    auto tar = *write_tar(Compression::gzip, sink_into(bytes));
    Artifact artifact(*tar, "/opt/ml/model", job_log_, interruption_);
    ASSERT_TRUE(artifact.add_tree(*Tree::open(directory_.path()), "model", "algo-1"));
    ASSERT_TRUE(tar->finish());
  }
  EXPECT_EQ(archives[0], archives[1]);
  EXPECT_LT(archives[0].size(), 10'000u);
}

TEST(JobLog, CountsOmittedLines) {
  size_t said = 0;
  JobLog job_log([&](const std::string&) { ++said; });
  for (int i = 0; i < 1000; ++i) job_log.say("x");
  job_log.finish();
  EXPECT_EQ(said, kJobLogLinesMax + 1);
}

TEST(Tar, RecognisesLinksThatStayInside) {
  EXPECT_TRUE(link_stays_inside("a/b", "../c"));
  EXPECT_TRUE(link_stays_inside("a", "b/c"));
  EXPECT_FALSE(link_stays_inside("a", "../c"));
  EXPECT_FALSE(link_stays_inside("a/b", "../../c"));
  EXPECT_FALSE(link_stays_inside("a/b/c", "x/../../y"));
  EXPECT_FALSE(link_stays_inside("a", "/etc"));
  EXPECT_FALSE(link_stays_inside("a", ""));
}

}  // namespace
}  // namespace trainyard::agent
