/* Accesses to the application's memory that a peer has asked for. They are ordered by messages that
 * ThreadSanitizer can not see; to the application they are those of an adapter. */
#ifndef WEFT_UTIL_DEVICE_H
#define WEFT_UTIL_DEVICE_H

#ifdef __SANITIZE_THREAD__
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
#define UTIL_DEVICE_BEGIN                                                                          \
	(AnnotateIgnoreReadsBegin(__FILE__, __LINE__),                                             \
	 AnnotateIgnoreWritesBegin(__FILE__, __LINE__))
#define UTIL_DEVICE_END                                                                            \
	(AnnotateIgnoreReadsEnd(__FILE__, __LINE__), AnnotateIgnoreWritesEnd(__FILE__, __LINE__))
#else
#define UTIL_DEVICE_BEGIN ((void)0)
#define UTIL_DEVICE_END   ((void)0)
#endif

#endif
