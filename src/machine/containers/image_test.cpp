#include "containers/image.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <thread>

#include "containers/container.hpp"
#include "os/files.hpp"
#include "os/process.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::containers {
namespace {

using Words = std::vector<std::string>;
const std::string kDigest = "sha256:" + std::string(64, 'a');

TEST(CommandLine, IsDockerRunImageTrain) {
  struct Case {
    Words image, entrypoint, arguments, expected;
  };
  const Case cases[] = {
      {{}, {}, {}, {"train"}},
      {{"python3", "run.py"}, {}, {}, {"python3", "run.py", "train"}},
      {{"python3"}, {}, {"a", "b"}, {"python3", "a", "b"}},
      {{"python3"}, {"bash"}, {}, {"bash"}},
      {{"python3"}, {"bash", "-c"}, {"x"}, {"bash", "-c", "x"}},
  };
  for (const auto& each : cases)
    EXPECT_EQ(command_line(each.image, each.entrypoint, each.arguments), each.expected);
}

TEST(ImageDocuments, FindsATagInAnIndex) {
  const std::string index = R"({"manifests":[{"digest":")" + kDigest +
                            R"(","annotations":{"org.opencontainers.image.ref.name":"v1"}}]})";
  ASSERT_TRUE(find_in_index(index, "v1"));
  EXPECT_EQ(find_in_index(index, "v1")->digest, kDigest);
  EXPECT_EQ(find_in_index(index, "")->digest, kDigest) << "the only one";
  EXPECT_EQ(find_in_index(index, "v2").error().kind, Kind::not_found);
  EXPECT_NE(find_in_index(index, "v2").error().message.find("v1"), std::string::npos)
      << "it says what there is";
}

TEST(ImageDocuments, ADigestIsNeverAPath) {
  for (const char* digest : {"sha256:../../etc/passwd", "sha256:", "md5:00", "", "sha256:AAAA"}) {
    const std::string index = R"({"manifests":[{"digest":")" + std::string(digest) + R"("}]})";
    EXPECT_EQ(find_in_index(index, "").error().kind, Kind::invalid) << digest;
  }
}

TEST(ImageDocuments, FindsThePlatformInAnIndexOfManifests) {
  const std::string manifest =
      R"({"manifests":[{"digest":"x","platform":{"os":"linux","architecture":"arm64"}},{"digest":")" +
      kDigest + R"(","platform":{"os":"linux","architecture":"amd64"}}]})";
  const auto found = read_manifest(manifest, "amd64");
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->is_index);
  EXPECT_EQ(found->next.digest, kDigest);
  EXPECT_EQ(read_manifest(manifest, "riscv64").error().kind, Kind::not_found);
  EXPECT_FALSE(read_manifest(R"({"config":{"digest":")" + kDigest + R"("}})", "amd64")->is_index);
}

TEST(ImageDocuments, ReadsTheLayersOfAManifest) {
  const std::string start = R"({"config":{"digest":")" + kDigest + R"("},"layers":)";
  const auto found =
      read_manifest(start + R"([{"digest":")" + kDigest + R"(","size":12}]})", "amd64");
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->layers.size(), 1u);
  EXPECT_EQ(found->layers[0].bytes, 12u);
  for (const char* wrong : {"{}}", "7}", R"([{"digest":"sha256:../x"}]})", "[1]}"})
    EXPECT_EQ(read_manifest(start + wrong, "amd64").error().kind, Kind::invalid) << wrong;
}

TEST(PullProgress, IsFormattedForUsers) {
  using Doing = PullProgress::Doing;
  EXPECT_EQ(format_progress({Doing::downloading, 120 << 20, 480 << 20}),
            "Downloading the training image: 120 of 480 MiB");
  EXPECT_EQ(format_progress({Doing::unpacking, 0, 1}), "Unpacking the training image: 0 of 1 MiB");
  EXPECT_EQ(format_progress({Doing::downloading, 0, 0}), "Downloading the training image");
}

TEST(ImageDocuments, ReadsAConfig) {
  const auto config = read_image_config(
      R"({"config":{"User":"7:8","Env":["A=B=C","D="],"Entrypoint":["/bin/x"],"Cmd":null,"WorkingDir":"/a/../b/./c/"}})");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->environment, (std::map<std::string, std::string>{{"A", "B=C"}, {"D", ""}}));
  EXPECT_EQ(config->entrypoint, Words{"/bin/x"});
  EXPECT_EQ(config->working_directory, "/b/c");
  EXPECT_EQ(read_image_config("{}")->working_directory, "/");
  for (const char* wrong : {"", "[]", R"({"config":1})", R"({"config":{"Env":["=x"]}})",
                            R"({"config":{"Entrypoint":"x"}})", R"({"config":{"Cmd":[1]}})",
                            R"({"config":{"Cmd":["a\u0000"]}})"})
    EXPECT_EQ(read_image_config(wrong).error().kind, Kind::invalid) << wrong;
}

TEST(ImageDocuments, FindsUsers) {
  constexpr const char* kPasswd = "root:x:0:0::/root:/bin/sh\nann:x:1000:100::/:\nbad:x:q:1::/:\n";
  constexpr const char* kGroup = "root:x:0:\nusers:x:100:\nstaff:x:50:\n";
  const auto ids = [&](const char* user) {
    const auto found = find_user(user, kPasswd, kGroup);
    return found ? std::to_string(found->user) + ":" + std::to_string(found->group)
                 : std::string(to_string(found.error().kind));
  };
  EXPECT_EQ(ids(""), "0:0");
  EXPECT_EQ(ids("ann"), "1000:100");
  EXPECT_EQ(ids("ann:staff"), "1000:50");
  EXPECT_EQ(ids("1000"), "1000:100");
  EXPECT_EQ(ids("4000"), "4000:0");
  EXPECT_EQ(ids("4000:7"), "4000:7");
  EXPECT_EQ(ids("eve"), "invalid");
  EXPECT_EQ(ids("bad"), "invalid");
  EXPECT_EQ(ids("ann:nobodies"), "invalid");
  EXPECT_EQ(ids("-1"), "invalid");
  EXPECT_EQ(ids("99999999999"), "invalid");
}

TEST(UserOf, ReadsOnlyRegularFilesOfTheImage) {
  const os::TemporaryDirectory root;
  const std::string accounts = root.path() + "/etc/passwd";
  ASSERT_TRUE(os::make_directories(root.path() + "/etc"));
  ASSERT_TRUE(os::write_file(root.path() + "/accounts", "ann:x:1000:100::/:\n"));
  // Links lead to files in the image, as in a container.
  ASSERT_EQ(::symlink("/accounts", accounts.c_str()), 0);
  const auto linked = user_of(root.path(), "ann");
  ASSERT_TRUE(linked) << linked.error().message;
  EXPECT_EQ(linked->user, 1000u);
  ASSERT_TRUE(os::remove_all(accounts));
  ASSERT_EQ(::mkfifo(accounts.c_str(), 0666), 0);
  EXPECT_EQ(user_of(root.path(), "ann").error().kind, Kind::invalid) << "a FIFO";
  EXPECT_TRUE(user_of(root.path(), "7"));
  ASSERT_TRUE(os::remove_all(accounts));
  if (::mknod(accounts.c_str(), S_IFCHR | 0666, makedev(1, 5)) != 0) return;  // needs root
  EXPECT_EQ(user_of(root.path(), "ann").error().kind, Kind::invalid) << "a device";
  EXPECT_TRUE(user_of(root.path(), "7"));
}

class RealImage : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0 || !os::on_path("umoci") || !os::on_path("skopeo") ||
        !os::on_path("busybox") || !os::on_path("crun"))
      GTEST_SKIP() << "needs root, umoci, skopeo, crun and busybox";
    images_ = directory_.path() + "/images";
    layout_ = directory_.path() + "/layout";
    const std::string image = layout_ + ":v1";
    ASSERT_TRUE(os::make_directories(directory_.path() + "/etc"));
    ASSERT_TRUE(
        os::write_file(directory_.path() + "/etc/passwd", "root:x:0:0::/:\nann:x:1234:1234::/:\n"));
    for (const Words& words :
         {Words{"umoci", "init", "--layout", layout_}, Words{"umoci", "new", "--image", image},
          Words{"umoci", "insert", "--image", image, "/bin/busybox", "/bin/sh"},
          Words{"umoci", "insert", "--image", image, directory_.path() + "/etc/passwd",
                "/etc/passwd"},
          Words{"umoci", "config", "--image", image, "--config.entrypoint", "/bin/sh",
                "--config.entrypoint", "-c", "--config.env", "GREETING=hello",
                "--config.workingdir", "/opt", "--config.user", "ann"}}) {
      const auto done = os::run_or_fail({words});
      ASSERT_TRUE(done) << done.error().message;
    }
  }
  // Returns the output and exit code of a container of the image.
  std::string run_in(const UnpackedImage& image, const std::string& script) {
    ContainerSpec spec;
    spec.id = "image-test";
    spec.directory = directory_.path() + "/bundle";
    spec.image_root = image.root;
    spec.arguments = command_line(image.config.entrypoint, {}, {script});
    spec.environment = image.config.environment;
    spec.working_directory = image.config.working_directory;
    spec.user_id = image.user_id;
    spec.group_id = image.group_id;
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return "no pipe";
    const os::File reading(ends[0]);
    auto container = start_container(spec, ends[1]);
    if (!container) return container.error().message;
    std::string output;
    char buffer[4096];
    for (ssize_t got; (got = ::read(reading.descriptor(), buffer, sizeof buffer)) > 0;)
      output.append(buffer, size_t(got));
    return output;
  }

  os::TemporaryDirectory directory_;
  std::string images_, layout_;
};

TEST_F(RealImage, IsUnpackedOnceAndRuns) {
  const auto image = unpack_image("oci:" + layout_ + ":v1", images_);
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(image->user_id, 1234u);
  EXPECT_EQ(image->config.working_directory, "/opt");
  struct stat first, second;
  ASSERT_EQ(::stat(image->root.c_str(), &first), 0);
  const auto again = unpack_image("oci:" + layout_ + ":v1", images_);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->root, image->root);
  EXPECT_EQ(again->config.environment, image->config.environment);
  ASSERT_EQ(::stat(again->root.c_str(), &second), 0);
  EXPECT_EQ(first.st_ino, second.st_ino);
  EXPECT_EQ(run_in(*image, "echo $GREETING $$; pwd; ! echo x 2>/dev/null >/bin/sh"),
            "hello 1\n/opt\n");
}

TEST_F(RealImage, SeveralHostsWaitForTheFirst) {
  std::vector<std::thread> threads;
  std::vector<std::string> roots(4);
  for (auto& root : roots)
    threads.emplace_back([&root, this] {
      const auto image = unpack_image("oci:" + layout_ + ":v1", images_);
      root = image ? image->root : image.error().message;
    });
  for (auto& thread : threads) thread.join();
  for (const auto& root : roots) EXPECT_EQ(root, roots[0]);
  EXPECT_TRUE(os::exists(roots[0] + "/bin/sh"));
}

TEST_F(RealImage, IsFetchedFromContainersStorage) {
  const std::string store = "containers-storage:[vfs@" + directory_.path() + "/store+" +
                            directory_.path() + "/run]localhost/train:1";
  const auto copied = os::run_or_fail(
      {{"skopeo", "--insecure-policy", "copy", "--quiet", "oci:" + layout_ + ":v1", store}});
  if (!copied) GTEST_SKIP() << copied.error().message;
  const auto image = unpack_image(store, images_);
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(run_in(*image, "echo $GREETING"), "hello\n");
}

TEST_F(RealImage, ReportsMissingImages) {
  EXPECT_EQ(unpack_image("oci:" + layout_ + ":v2", images_).error().kind, Kind::not_found);
  EXPECT_EQ(unpack_image("oci:" + directory_.path() + "/nowhere:v1", images_).error().kind,
            Kind::not_found);
  EXPECT_EQ(unpack_image("containers-storage:localhost/no-such-image-here:1", images_).error().kind,
            Kind::not_found);
  EXPECT_EQ(unpack_image("ftp://example/x", images_).error().kind, Kind::invalid);
  EXPECT_EQ(unpack_image("docker://127.0.0.1:1/x", images_).error().kind, Kind::unavailable);
}

TEST_F(RealImage, LimitsAllItsLayersTogether) {
  const auto names = [&](const std::string& directory) {
    auto found = os::list_directory(images_ + "/" + directory);
    return found ? *std::move(found) : std::vector<std::string>();
  };
  ASSERT_TRUE(unpack_image("oci:" + layout_ + ":v1", images_));
  for (const auto& name : names(""))
    if (name.starts_with("sha256-") && name.find('.') == std::string::npos) {
      ASSERT_TRUE(os::remove_all(images_ + "/" + name));
    }
  for (const auto& name : names("layers"))
    if (name.find('.') == std::string::npos) {
      ASSERT_TRUE(os::write_file(images_ + "/layers/" + name + "/bytes",
                                 std::to_string(uint64_t{256} << 30)));
    }
  const auto again = unpack_image("oci:" + layout_ + ":v1", images_);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind, Kind::exhausted) << again.error().message;
}

TEST_F(RealImage, LeavesNoFilesIfItIsDamaged) {
  const auto blobs = os::list_directory(layout_ + "/blobs/sha256");
  ASSERT_TRUE(blobs);
  for (const auto& blob : *blobs) {
    struct stat status;
    const std::string path = layout_ + "/blobs/sha256/" + blob;
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    if (status.st_size < 100'000) continue;
    ASSERT_EQ(::truncate(path.c_str(), status.st_size / 2), 0);
  }
  const auto image = unpack_image("oci:" + layout_ + ":v1", images_);
  ASSERT_FALSE(image);
  const auto names = os::list_directory(images_);
  ASSERT_TRUE(names);
  for (const auto& name : *names) EXPECT_FALSE(name.ends_with(".unpacking")) << name;
  const auto left = trim_images(images_, 0);
  ASSERT_TRUE(left) << left.error().message;
  EXPECT_EQ(*left, 0u);
}

}  // namespace
}  // namespace trainyard::containers
