# The cluster of ../cluster.yaml for Terraform, with a Capacity Block: hosts that are yours for a time that is paid at once.
# Put in YOUR reservation, its zone and your bucket. It bills from the first minute: docs/guides/kubernetes.md says how it ends.
#   terraform init
#   terraform apply -var capacity_reservation_id=cr-0123456789abcdef0 -var zone=us-east-1a -var bucket=your-bucket
terraform {
  required_version = ">= 1.9"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 6.28"
    }
  }
}

variable "region" {
  type    = string
  default = "us-east-1"
}

variable "zone" {
  description = "Zone of the Capacity Block, as describe-capacity-reservations says it"
  type        = string
}

variable "capacity_reservation_id" {
  description = "Id of the Capacity Block, cr-..."
  type        = string
}

variable "hosts" {
  description = "Hosts of the Capacity Block that join the cluster; 0 lets them go"
  type        = number
  default     = 2
}

variable "bucket" {
  description = "Bucket with the training data, below train/"
  type        = string
}

locals {
  name = "trainmaster"
  tags = { project = "trainmaster" } # by which the bill and what is left over are found
}

provider "aws" {
  region = var.region
  default_tags {
    tags = local.tags
  }
}

data "aws_availability_zones" "all" {
  filter {
    name   = "opt-in-status"
    values = ["opt-in-not-required"]
  }
}

locals {
  # EKS wants two zones. The hosts join the first one alone: a Capacity Block has one zone, and EFA does not leave it.
  zones = [var.zone, [for zone in data.aws_availability_zones.all.names : zone if zone != var.zone][0]]
}

module "vpc" {
  source  = "terraform-aws-modules/vpc/aws"
  version = "6.5.0"

  name               = local.name
  cidr               = "10.0.0.0/16"
  azs                = local.zones
  private_subnets    = ["10.0.0.0/18", "10.0.64.0/18"]
  public_subnets     = ["10.0.128.0/24", "10.0.129.0/24"]
  enable_nat_gateway = true
  single_nat_gateway = true # billed by the hour, hence one
}

module "eks" {
  source  = "terraform-aws-modules/eks/aws"
  version = "21.17.0"

  name                                     = local.name
  kubernetes_version                       = "1.34"
  endpoint_public_access                   = true
  enable_cluster_creator_admin_permissions = true
  cloudwatch_log_group_retention_in_days   = 14
  vpc_id                                   = module.vpc.vpc_id
  subnet_ids                               = module.vpc.private_subnets

  addons = {
    coredns                = {}
    kube-proxy             = {}
    eks-pod-identity-agent = { before_compute = true }
    vpc-cni                = { before_compute = true }
    aws-fsx-csi-driver     = {}
    aws-efs-csi-driver     = {}
    amazon-cloudwatch-observability = { # Container Insights, with GPUs, and the pods' logs
      pod_identity_association = [{
        role_arn        = aws_iam_role.pods["cloudwatch"].arn
        service_account = "cloudwatch-agent"
      }]
    }
  }

  eks_managed_node_groups = {
    system = {
      instance_types = ["m7i.large"]
      min_size       = 1
      max_size       = 2
      desired_size   = 1
      labels         = { "alpha.eksctl.io/nodegroup-name" = "system" } # as eksctl calls it: data-from-s3.yaml looks for it
    }
    p5 = {
      ami_type           = "AL2023_x86_64_NVIDIA" # with the driver and what EFA needs of a host
      instance_types     = ["p5.48xlarge"]
      min_size           = 0
      max_size           = max(var.hosts, 1)
      desired_size       = var.hosts
      subnet_ids         = [module.vpc.private_subnets[0]]
      enable_efa_support = true # all interfaces, their security group, a placement group
      capacity_type      = "CAPACITY_BLOCK"
      instance_market_options = {
        market_type = "capacity-block"
      }
      capacity_reservation_specification = {
        capacity_reservation_target = {
          capacity_reservation_id = var.capacity_reservation_id
        }
      }
      labels = { "vpc.amazonaws.com/efa.present" = "true" }
      cloudinit_pre_nodeadm = [{ # the host's own disks as one, for images and pods
        content_type = "application/node.eks.aws"
        content      = <<-EOT
          ---
          apiVersion: node.eks.aws/v1alpha1
          kind: NodeConfig
          spec:
            instance:
              localStorage:
                strategy: RAID0
        EOT
      }]
    }
  }
}

# Rights of pods, by EKS Pod Identity: the training reads its data, and CloudWatch's agent writes.
resource "aws_iam_role" "pods" {
  for_each = toset(["trainer", "cloudwatch"])

  name = "${local.name}-${each.key}"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "pods.eks.amazonaws.com" }
      Action    = ["sts:AssumeRole", "sts:TagSession"]
    }]
  })
}

resource "aws_iam_role_policy" "trainer" {
  name = "data"
  role = aws_iam_role.pods["trainer"].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      { Effect = "Allow", Action = ["s3:ListBucket"], Resource = "arn:aws:s3:::${var.bucket}" },
      { Effect = "Allow", Action = ["s3:GetObject"], Resource = "arn:aws:s3:::${var.bucket}/train/*" },
    ]
  })
}

resource "aws_iam_role_policy_attachment" "cloudwatch" {
  role       = aws_iam_role.pods["cloudwatch"].name
  policy_arn = "arn:aws:iam::aws:policy/CloudWatchAgentServerPolicy"
}

resource "aws_eks_pod_identity_association" "trainer" {
  cluster_name    = module.eks.cluster_name
  namespace       = "default"
  service_account = "trainer"
  role_arn        = aws_iam_role.pods["trainer"].arn
}

output "kubectl" {
  value = "aws eks update-kubeconfig --region ${var.region} --name ${module.eks.cluster_name}"
}
