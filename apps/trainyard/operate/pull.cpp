#include "trainyard/operate/pull.hpp"

#include <unistd.h>

#include <cstdio>

#include "config/config.hpp"
#include "containers/image.hpp"
#include "domain/deprecated_images.hpp"
#include "os/process.hpp"
#include "trainyard/images.hpp"
#include "trainyard/terminal.hpp"

namespace trainyard::apps {
namespace {

// Prints progress: on a terminal in one line that is overwritten, elsewhere each step once.
class ProgressLine {
 public:
  bool operator()(const containers::PullProgress& progress) {
    if (terminal_) {
      std::printf("\r\x1b[K%s", containers::format_progress(progress).c_str());
    } else if (!said_ || progress.doing != *said_) {
      std::printf("%s\n", containers::format_progress({progress.doing, 0, 0}).c_str());
    }
    said_ = progress.doing;
    std::fflush(stdout);
    return true;
  }
  void end() const {
    if (terminal_ && said_) std::printf("\r\x1b[K");
  }

 private:
  const bool terminal_ = ::isatty(STDOUT_FILENO) == 1;
  std::optional<containers::PullProgress::Doing> said_;
};

}  // namespace

Result<void> pull(const PullOptions& options) {
  config::Config config;
  if (!options.config_file.empty()) config = TRY(config::read_config(options.config_file));
  if (const auto present = domain::current_image_name(options.image); present != options.image)
    std::fprintf(stderr, "trainyard: the image name %s is deprecated: use %s\n",
                 options.image.c_str(), std::string(present).c_str());
  const auto image =
      TRY(domain::resolve_image(all_images(config.images, os::program_directory()), options.image));
  if (image.kind == domain::Image::Kind::machine) {
    std::printf("%s is this machine's own system: nothing to pull\n", options.image.c_str());
    return {};
  }
  ProgressLine line;
  const auto unpacked = TRY(containers::unpack_image(
      domain::transport_of(image), images_directory(options.data_directory),
      [&](const containers::PullProgress& progress) { return line(progress); }));
  line.end();
  std::printf("%s is ready: %s\n", paint(Paint::bold, options.image).c_str(),
              unpacked.digest.c_str());
  return {};
}

}  // namespace trainyard::apps
