// A Collection is the labelled images of a channel. Their order is the same on every host that has
// the same files.
//
//   .rec files     every RecordIO file below the channel's folder, by name
//   image files    those that the .lst files of another folder list, by the lists' names and lines
//
// Opening reads only the labels; the bytes of an image are read when they are needed.
//
// Threads: read() and name() from any thread. Errors: those of files; corrupt or invalid, naming
// the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "images/list_file.hpp"
#include "images/record_file.hpp"

namespace trainyard::images {

inline constexpr size_t kFoldersDepthMax = 16;
inline constexpr size_t kFilesMax = 1 << 20;  // .rec or .lst files of a channel

// If a channel is sharded by object, files that a list names may be missing on this host: another
// host has them.
enum class MissingFiles { are_errors, are_elsewhere };

class Collection {
 public:
  static Result<Collection> open_records(const std::string& folder);
  static Result<Collection> open_lists(const std::string& lists_folder,
                                       const std::string& images_folder, MissingFiles missing);

  size_t size() const { return labels_.size(); }
  const std::vector<float>& labels(size_t image) const { return labels_[image]; }
  // Reads the encoded image.
  Result<std::string> read(size_t image) const;
  // Names an image in errors: "a.rec, record 5" or "dogs/1.jpg".
  std::string name(size_t image) const;
  // Returns a digest of names, sizes and labels: hosts with equal digests have the same images.
  uint64_t digest() const { return digest_; }

 private:
  Result<void> add_records(const std::string& folder, const std::string& name);
  Result<void> add_list(const std::string& text, const std::string& images_folder,
                        MissingFiles missing);
  void add_to_digest(const std::string& name, uint64_t bytes, const std::vector<float>& labels);

  struct Position {
    uint32_t file = 0;
    uint32_t record = 0;
  };
  std::vector<RecordFile> files_;
  std::vector<Position> positions_;  // positions of records
  std::string folder_;               // folder of the image files
  std::vector<std::string> paths_;   // paths of the image files, relative to the folder
  std::vector<std::vector<float>> labels_;
  uint64_t digest_ = 0;
};

}  // namespace trainyard::images
