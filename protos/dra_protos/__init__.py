"""Generated messages and stubs of the kubelet's gRPC services for plugins.

The modules ending in ``_pb2`` and ``_pb2_grpc`` come out of ``protos/generate.py`` and are never
edited by hand. Programs import them from here and from nowhere else: a second copy of the same
messages in one process is refused by protobuf, because the full message names would collide.

=========================  =======================================================
modules                    gRPC service (and the name it is advertised by)
=========================  =======================================================
``pluginregistration_v1``  ``pluginregistration.Registration`` (never advertised)
``dra_v1``                 ``k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin``
                           (``v1.DRAPlugin``)
``dra_v1beta1``            ``k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin``
                           (``v1beta1.DRAPlugin``)
``dra_health_v1``          ``v1.DRAResourceHealth`` (the same)
``dra_health_v1alpha1``    ``v1alpha1.DRAResourceHealth`` (the same)
=========================  =======================================================
"""
