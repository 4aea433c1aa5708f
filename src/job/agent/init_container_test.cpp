#include "agent/init_container.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>

#include "contract/container_init.hpp"
#include "os/packet_socket.hpp"

namespace trainyard::agent {
namespace {

class QuietContainer final : public containers::Container {
 public:
  explicit QuietContainer(bool& ended) : ended_(ended) {}
  ~QuietContainer() override { ended_ = true; }
  Result<void> signal(int) override { return {}; }
  void kill_all() override {}
  Result<std::optional<containers::ContainerExit>> wait(Duration) override {
    return std::optional<containers::ContainerExit>();
  }

 private:
  bool& ended_;
};

class StartWithInit : public testing::Test {
 protected:
  // The init's report; nothing: it ends without one.
  Result<std::unique_ptr<containers::Container>> start(std::optional<std::string> report,
                                                       containers::ContainerSpec spec = {}) {
    if (spec.arguments.empty()) spec.arguments = {"train", "--fast"};
    return start_with_init(
        [&](const containers::ContainerSpec& made,
            int output) -> Result<std::unique_ptr<containers::Container>> {
          ::close(output);
          made_ = made;
          const os::PacketSocket init(os::File(::fcntl(made.input, F_DUPFD_CLOEXEC, 3)));
          if (report) {
            EXPECT_TRUE(init.send(*report));
          }
          return std::unique_ptr<containers::Container>(std::make_unique<QuietContainer>(ended_));
        },
        spec, ::open("/dev/null", O_WRONLY | O_CLOEXEC), "/entry");
  }
  static std::string report(contract::InitReport report) { return contract::encode(report); }

  containers::ContainerSpec made_;
  bool ended_ = false;
};

TEST_F(StartWithInit, RunsTheProgramBelowTheInit) {
  const auto container = start(report(contract::Started{}));
  ASSERT_TRUE(container) << container.error().message;
  EXPECT_EQ(made_.arguments,
            (std::vector<std::string>{"/opt/trainyard/entry", "--init", "train", "--fast"}));
  ASSERT_EQ(made_.mounts.size(), 1u);
  EXPECT_EQ(made_.mounts[0].source, "/entry");
  EXPECT_TRUE(made_.mounts[0].read_only);
  EXPECT_FALSE(ended_);
}

TEST_F(StartWithInit, MountsTheInitOnce) {
  containers::ContainerSpec spec;
  spec.mounts.emplace_back();
  spec.mounts.back().destination = "/opt/trainyard/entry";
  ASSERT_TRUE(start(report(contract::Started{}), spec));
  EXPECT_EQ(made_.mounts.size(), 1u);
}

TEST_F(StartWithInit, ReportsAMissingProgram) {
  const auto container =
      start(report(contract::NotStarted{"executable file `train` not found in $PATH"}));
  ASSERT_FALSE(container);
  EXPECT_EQ(container.error().kind, Kind::not_found);
  EXPECT_EQ(container.error().message, "executable file `train` not found in $PATH");
  EXPECT_TRUE(ended_) << "the container ends with its start";
}

TEST_F(StartWithInit, RejectsInvalidReportsOfTheInit) {
  EXPECT_EQ(start(std::nullopt).error().kind, Kind::unavailable);
  EXPECT_EQ(start(report(contract::Ended{0})).error().kind, Kind::corrupt);
  EXPECT_EQ(start("not JSON").error().kind, Kind::invalid);
}

TEST(IsInit, RecognisesTheInitsOfImages) {
  for (const char* init : {"/init", "/usr/bin/tini", "tini", "/sbin/init", "/opt/trainyard/entry",
                           "/usr/local/bin/dumb-init", "/lib/systemd/systemd"})
    EXPECT_TRUE(is_init(init)) << init;
  for (const char* program : {"python3", "/bin/bash", "train", "/opt/init/run", "initialise", ""})
    EXPECT_FALSE(is_init(program)) << program;
}

}  // namespace
}  // namespace trainyard::agent
