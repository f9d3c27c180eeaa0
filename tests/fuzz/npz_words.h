// What the npz fuzzer's inputs choose from, by a byte each.
#ifndef DPAR_TESTS_FUZZ_NPZ_WORDS_H_
#define DPAR_TESTS_FUZZ_NPZ_WORDS_H_

namespace dpar::fuzz {

inline constexpr const char* kArrayNames[] = {"adj_data",
                                              "adj_indices",
                                              "adj_indptr",
                                              "adj_shape",
                                              "attr_data",
                                              "attr_indices",
                                              "attr_indptr",
                                              "attr_shape",
                                              "labels",
                                              "num_classes",
                                              "attr_matrix",
                                              "attr",
                                              "adj_matrix.data",
                                              "adj_matrix.indices",
                                              "adj_matrix.indptr",
                                              "adj_matrix.shape",
                                              "attr_matrix.data",
                                              "other",
                                              ""};
inline constexpr const char* kArrayTypes[] = {"<f4", "<f8", "<i4", "<i8", "<u8", "<u4", "|b1",
                                              "|i1", "<u2", "|O",  "<U4", "|S3", ">i4", "<f2"};

// Bits of an array's form byte.
inline constexpr unsigned kRankBits = 3;
inline constexpr unsigned kWideShape = 4;      // dimensions of 8 bytes, not of one
inline constexpr unsigned kRepeated = 8;       // the content as often as a byte says
inline constexpr unsigned kFittingShape = 16;  // a vector of as many entries as there are
inline constexpr unsigned kOwnHeader = 32;     // the header is given, too
inline constexpr unsigned kPacked = 64;        // deflated

}  // namespace dpar::fuzz

#endif  // DPAR_TESTS_FUZZ_NPZ_WORDS_H_
