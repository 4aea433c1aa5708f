#include "containers/image_layer.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "os/files.hpp"
#include "os/process.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::containers {
namespace {

class Layers : public testing::Test {
 protected:
  // Makes the archive of a layer from the files that `script` makes in an empty directory. The
  // option `packing` of tar compresses it.
  std::string archive(const std::string& script, const std::string& packing = "--gzip") {
    const std::string name = directory_.path() + "/archive" + std::to_string(++count_);
    EXPECT_TRUE(os::make_directories(name + ".made"));
    const auto made = os::run_or_fail(
        {{"sh", "-ec", "umask 022\n" + script + "\ntar " + packing + " -cf '" + name + "' ."},
         {},
         "",
         name + ".made"});
    EXPECT_TRUE(made) << made.error().message;
    return name;
  }
  std::string layer(const std::string& script, const std::string& packing = "--gzip") {
    const std::string made = directory_.path() + "/layer" + std::to_string(++count_);
    const auto done = unpack_layer(archive(script, packing), made);
    EXPECT_TRUE(done) << done.error().message;
    return made;
  }
  // Returns the tree below the root, one line for each entry: path, kind, mode, content.
  std::string unpacked(const std::vector<std::string>& layers) {
    const std::string root = directory_.path() + "/root" + std::to_string(++count_);
    EXPECT_TRUE(os::make_directories(root));
    for (const auto& each : layers) {
      const auto done = link_layer_into(each, root);
      EXPECT_TRUE(done) << done.error().message;
    }
    const auto listed =
        os::run_or_fail({{"sh", "-c",
                          "find . -mindepth 1 -printf '%P %y %m %l\\n' | sort | sed 's/ *$//'; "
                          "find . -type f | sort | xargs cat"},
                         {},
                         "",
                         root});
    return listed ? *listed : listed.error().message;
  }

  os::TemporaryDirectory directory_;
  int count_ = 0;
};

// Tests archives of a few kilobytes that would become many bytes or files.
TEST_F(Layers, AreLimitedInBytesAndEntries) {
  const std::string zeros = archive("head -c 3000000 /dev/zero > zeros"),
                    many = archive("seq 500 | xargs touch");
  const auto unpack = [&](const std::string& archive, const LayerLimits& limits) {
    const std::string made = directory_.path() + "/layer" + std::to_string(++count_);
    auto done = unpack_layer(archive, made, limits);
    EXPECT_EQ(os::exists(made), bool(done)) << "nothing stays";
    return done;
  };
  const auto large = unpack(zeros, {.bytes_max = 2'000'000});
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().kind, Kind::exhausted) << large.error().message;
  EXPECT_TRUE(unpack(zeros, {.bytes_max = 3'100'000}));
  const auto files = unpack(many, {.entries_max = 400});
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().kind, Kind::exhausted) << files.error().message;
  EXPECT_TRUE(unpack(many, {.entries_max = 501}));
}

TEST_F(Layers, AreCombined) {
  const auto lower =
      layer("mkdir -m 1777 tmp; mkdir a; echo old > a/file; echo kept > a/kept; ln -s a/kept link");
  const auto upper = layer("mkdir -p a; echo new > a/file; chmod 4755 a/file", "--zstd");
  EXPECT_EQ(unpacked({lower, upper}),
            "a d 755\na/file f 4755\na/kept f 644\nlink l 777 a/kept\ntmp d 1777\nnew\nkept\n");
}

TEST_F(Layers, AnImpliedDirectoryHasNoMode) {
  const auto lower = layer("mkdir -m 1777 tmp; mkdir -m 700 mine");
  const std::string way = directory_.path() + "/way";
  ASSERT_TRUE(os::run_or_fail(
      {{"sh", "-ec",
        "mkdir -p in/tmp in/mine; echo x > in/tmp/x; tar -C in -cf '" + way + "' tmp/x mine"},
       {},
       "",
       directory_.path()}));
  ASSERT_TRUE(unpack_layer(way, directory_.path() + "/upper"));
  EXPECT_EQ(unpacked({lower, directory_.path() + "/upper"}),
            "mine d 755\ntmp d 1777\ntmp/x f 644\nx\n");
}

TEST_F(Layers, WhiteoutsRemoveEntriesOfLowerLayers) {
  const auto lower = layer(
      "mkdir -p a/b c d; echo 1 > a/b/one; echo 2 > a/two; echo 3 > c/three; echo 4 > d/four; ln "
      "-s / out");
  const auto upper = layer(
      "mkdir -p a c; touch a/.wh.b .wh.out .wh.d .wh. .wh... .wh.nothing .wh..wh.plnk; touch "
      "c/.wh..wh..opq; echo new > c/new");
  EXPECT_EQ(unpacked({lower, upper}), "a d 755\na/two f 644\nc d 755\nc/new f 644\n2\nnew\n");
  EXPECT_EQ(unpacked({upper, lower}).substr(0, 8), "a d 755\n") << "a layer's own files stay";
}

TEST_F(Layers, MayReplaceFilesByOtherKinds) {
  const auto lower = layer(
      "mkdir was_directory; echo x > was_directory/x; echo y > was_file; ln -s /etc was_link");
  const auto upper =
      layer("echo file > was_directory; mkdir was_file was_link; echo z > was_link/z");
  EXPECT_EQ(unpacked({lower, upper}),
            "was_directory f 644\nwas_file d 755\nwas_link d 755\nwas_link/z f 644\nfile\nz\n");
}

TEST_F(Layers, CannotWriteOutsideOfTheTree) {
  const std::string outside = directory_.path() + "/outside",
                    hostile = directory_.path() + "/hostile";
  ASSERT_TRUE(os::make_directories(outside));
  // First a link out of the tree and a file through it, then a name with "..".
  const auto made =
      os::run_or_fail({{"sh", "-ec",
                        "mkdir in in2; ln -s '" + outside +
                            "' in/out; mkdir in2/out; echo x > in2/out/x; echo y > y\n"
                            "tar -cf '" +
                            hostile +
                            "' -C in out\n"
                            "tar -rf '" +
                            hostile +
                            "' -C in2 out/x\n"
                            "tar -rPf '" +
                            hostile + "' --transform 's,^y$,../outside/y,' y"},
                       {},
                       "",
                       directory_.path()});
  ASSERT_TRUE(made) << made.error().message;
  (void)unpack_layer(hostile, directory_.path() + "/made");
  EXPECT_EQ(os::list_directory(outside)->size(), 0u);
}

TEST_F(Layers, OfDamagedArchivesLeaveNoFiles) {
  const auto whole = archive("head -c 300000 /dev/urandom > noise");
  ASSERT_EQ(::truncate(whole.c_str(), 100'000), 0);
  EXPECT_FALSE(unpack_layer(whole, directory_.path() + "/made"));
  EXPECT_FALSE(os::exists(directory_.path() + "/made"));
  ASSERT_TRUE(os::write_file(whole, "this is no archive"));
  EXPECT_FALSE(unpack_layer(whole, directory_.path() + "/made"));
}

TEST_F(Layers, ReportTheirSize) {
  EXPECT_GE(layer_bytes(layer("head -c 300000 /dev/urandom > noise")), 300'000u);
  EXPECT_EQ(layer_bytes(directory_.path() + "/nothing"), 0u);
}

TEST_F(Layers, OfEmptyFilesHaveTheSizeOfTheirInodes) {
  EXPECT_GE(layer_bytes(layer("seq 500 | xargs touch")), 500 * kBytesPerInode);
}

}  // namespace
}  // namespace trainyard::containers
